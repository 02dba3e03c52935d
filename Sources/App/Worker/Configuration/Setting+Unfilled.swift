// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

extension Setting {
    /// Where a shell's variable stands for a value in the file, as in `sasl.password:
    /// ${KAFKA_PASSWORD}`. Nothing fills it in, and as a password it would be taken as it is. The
    /// text is not quoted: it may be a password after all, which a variable can then give.
    func unfilled(at path: [String] = []) -> [ConfigurationProblem] {
        switch content {
        case .absent: return []
        case .list(let items): return items.flatMap { $0.unfilled(at: path) }
        case .map(let entries):
            return entries.flatMap { $0.value.unfilled(at: path + [$0.name]) }
        case .scalar(let text):
            guard case .line = origin, !Self.isOfRecords(path),
                text.wholeMatch(of: /\$\{[A-Za-z_][A-Za-z0-9_]*\}/) != nil
            else { return [] }
            return [
                ConfigurationProblem(
                    path: SettingReader.shown(path), origin: origin,
                    complaint: Complaint(
                        wrong: "is a shell's variable, and variables are not filled in",
                        remedy: "leave the key out and set "
                            + EnvironmentVariables.name(of: path)))
            ]
        }
    }

    /// Whether the value is compared with records or made of them, where `${key}` is a dollar sign
    /// before the record's key.
    private static func isOfRecords(_ path: [String]) -> Bool {
        if path.starts(with: ["kafka", "eventTests"]) { return true }
        guard path.starts(with: ["kafka", "events"]) else { return false }
        // The topic's name comes next, whatever it is.
        let key = path.dropFirst(3)
        return [["subject"], ["subjects"], ["when"], ["push", "payload"], ["push", "collapseID"]]
            .contains { key.starts(with: $0) }
    }
}
