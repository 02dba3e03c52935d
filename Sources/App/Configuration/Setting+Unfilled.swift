// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

extension Setting {
    /// Where a variable stands for a value in the file: a shell's, as in `sasl.password:
    /// ${KAFKA_PASSWORD}`, also with a default after `:-`, as Spring has it after `:`, or one as Kubernetes
    /// writes it, `$(KAFKA_PASSWORD)`. Nothing fills it in, and as a password it would be taken as it is. The
    /// text is not quoted: it may be a password after all, which a variable can then give.
    /// `$KAFKA_PASSWORD` alone is taken: it is likelier than those to be a password.
    func unfilled(at path: [String] = []) -> [ConfigurationProblem] {
        switch content {
        case .absent: return []
        case .list(let items): return items.flatMap { $0.unfilled(at: path) }
        case .map(let entries):
            return entries.flatMap { $0.value.unfilled(at: path + [$0.name]) }
        case .scalar(let text):
            guard case .line = origin, !Self.isOfRecords(path), Self.isVariable(text)
            else { return [] }
            return [
                ConfigurationProblem(
                    path: SettingReader.shown(path), origin: origin,
                    complaint: Complaint(
                        wrong: "stands for a variable, and variables are not filled in",
                        remedy: "leave the key out and set "
                            + EnvironmentVariables.name(of: path)))
            ]
        }
    }

    /// `${NAME}`, `${NAME:-default}` and the like, whose default may be another, or `$(NAME)`.
    private static func isVariable(_ text: String) -> Bool {
        // Each use of the expressions compiles them, and hardly a value begins so.
        guard text.utf8.first == UInt8(ascii: "$") else { return false }
        let shells = /\$\{[A-Za-z_][A-Za-z0-9_.]*(?:[:\-=?+].*)?\}/
        let kubernetes = /\$\([A-Za-z_][A-Za-z0-9_]*\)/
        return text.wholeMatch(of: shells) != nil || text.wholeMatch(of: kubernetes) != nil
    }

    /// Whether the value is compared with records or made of them, where `${key}` is a dollar sign
    /// before the record's key. A test compares these with the key table.
    private static func isOfRecords(_ path: [String]) -> Bool {
        if path.starts(with: ["kafka", "eventTests"]) { return true }
        guard path.starts(with: ["kafka", "events"]) else { return false }
        // The topic's name comes next, whatever it is.
        let key = path.dropFirst(3)
        return [
            ["subject"], ["subjects"], ["installation"], ["when"], ["push", "payload"],
            ["push", "collapseID"],
        ].contains { key.starts(with: $0) }
    }
}
