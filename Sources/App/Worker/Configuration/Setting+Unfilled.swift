// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

extension Setting {
    /// Where a shell's variable stands for a value, as in `sasl.password: ${KAFKA_PASSWORD}`. Nothing
    /// fills it in, and as a password it would be taken as it is.
    func unfilled(at path: [String] = []) -> [ConfigurationProblem] {
        switch content {
        case .absent: return []
        case .list(let items): return items.flatMap { $0.unfilled(at: path) }
        case .map(let entries):
            return entries.flatMap { entry in
                // What is in there is not for this program.
                ["eventTests", "push"].contains(entry.name)
                    ? [] : entry.value.unfilled(at: path + [entry.name])
            }
        case .scalar(let text):
            guard text.wholeMatch(of: /\$\{[A-Za-z_][A-Za-z0-9_]*\}/) != nil else { return [] }
            return [
                ConfigurationProblem(
                    path: SettingReader.shown(path), origin: origin,
                    complaint: Complaint(
                        wrong: "is \(text), and variables are not filled in",
                        remedy: "leave the key out and set "
                            + EnvironmentVariables.name(of: path)))
            ]
        }
    }
}
