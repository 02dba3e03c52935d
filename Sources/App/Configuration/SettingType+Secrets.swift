// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

extension SettingType where Value == Secret {
    /// A secret that only an environment variable can supply.
    static func variable(_ notation: String) -> Self {
        let read = { (setting: Setting) throws(Complaint) -> Secret in
            guard case .variable = setting.origin else {
                throw Complaint(
                    wrong: "is a secret and may not be written in the file",
                    remedy: "set it as an environment variable, or use a file of its own")
            }
            guard case .scalar(let text) = setting.content, !text.isEmpty else {
                throw Complaint(wrong: "is empty", remedy: "must be \(notation)")
            }
            return Secret(text)
        }
        // The schema `false` matches nothing, so the key may not be in the file.
        return SettingType(
            notation: notation, schema: .literal("false"), isVariableOnly: true, read: read,
            write: \.description, hidden: { $0 })
    }

    /// A secret text, which messages never quote.
    ///
    /// - Parameter shown: makes the part of the text that may be shown.
    static func text(
        _ notation: String, matching pattern: String, schemaTypes: [JSONText] = ["string"],
        shown: @escaping (String) -> String
    ) -> Self {
        let plain = SettingType<String>.text(notation, matching: pattern)
        let read = { (setting: Setting) throws(Complaint) -> Secret in
            // The message of the plain type would quote the text.
            guard let text = try? plain.read(setting) else {
                throw Complaint(wrong: "cannot be read", remedy: "must be \(notation)")
            }
            // A key or a certificate in PEM has lines.
            return Secret(text.contains("-----BEGIN") ? text : try SecretText.line(text))
        }
        return SettingType(
            notation: notation,
            schema: .object([
                ("type", .array(schemaTypes)), ("pattern", .string("^(?:\(pattern))$")),
            ]),
            read: read, write: { shown($0.text) }, hidden: { $0 })
    }
}
