// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// The variables `LAMPLIGHTER_…`: each key has one, which overrides the file.
///
/// The name is the key's path in capitals, joined by `_`: `kafka.bootstrap` is
/// `LAMPLIGHTER_KAFKA_BOOTSTRAP`. In a part of the path that is a name chosen by the user, other
/// characters than letters and digits become `_` too. Such a part stands for the matching name in
/// the file, or else for a new name in lower case.
struct EnvironmentVariables {
    static let prefix = "LAMPLIGHTER_"

    let root: KeyShape.Form

    /// Overrides `settings` by the variables. Returns a problem for each `LAMPLIGHTER_…` variable
    /// that belongs to no key. Line ends after a value, as `echo` leaves them, are no part of it.
    ///
    /// - Parameter ignored: told of each variable that has the name of a key, and that Kubernetes has
    ///   set for a Service.
    func apply(
        _ environment: [String: String], to settings: inout Setting,
        ignored: (_ name: String) -> Void = { _ in }
    ) -> [ConfigurationProblem] {
        var problems: [ConfigurationProblem] = []
        for (name, text) in environment.sorted(by: { $0.key < $1.key })
        where name.hasPrefix(Self.prefix) {
            let words = String(name.dropFirst(Self.prefix.count))
            if let path = path(of: words, in: root, at: settings) {
                // In this order, since the other one compiles an expression.
                if Self.isAddress(text), Self.isServiceLink(name) {
                    ignored(name)
                    continue
                }
                settings.set(
                    Setting(content: .scalar(SecretText.trimmed(text)), origin: .variable(name)),
                    at: path[...])
            } else if !Self.isServiceLink(name) {
                problems.append(unknown(name))
            }
        }
        return problems
    }

    /// The variable of a path: that of `kafka.groupInstanceID` is
    /// `LAMPLIGHTER_KAFKA_GROUPINSTANCEID`.
    static func name(of path: [String]) -> String {
        prefix + path.map(Self.words).joined(separator: "_")
    }

    private static func words(_ name: String) -> String {
        String(name.map { $0.isASCII && ($0.isLetter || $0.isNumber) ? $0 : "_" }).uppercased()
    }

    private func path(
        of words: String, in form: KeyShape.Form, at setting: Setting?
    ) -> [String]? {
        switch form {
        case .value:
            return words.isEmpty ? [] : nil
        case .section(let rows):
            for row in rows {
                guard let rest = Self.rest(of: words, after: Self.words(row.name)) else { continue }
                let within = setting?.entry(row.name)
                if let path = path(of: rest, in: row.form, at: within) { return [row.name] + path }
            }
            return nil
        case .map(let names, let element):
            return path(of: words, names: names, element: element, at: setting)
        }
    }

    /// The path that the words of a variable stand for below a map; nil if there is none. Every
    /// split of the words into a name and the rest is tried, the longest name first.
    private func path(
        of words: String, names: NameRule, element: KeyShape.Form, at setting: Setting?
    ) -> [String]? {
        let ends = [words.endIndex] + words.indices.reversed().filter { words[$0] == "_" }
        for end in ends where end > words.startIndex {
            let name = String(words[..<end])
            guard let rest = Self.rest(of: words, after: name),
                let path = path(of: rest, in: element, at: nil)
            else { continue }
            let known = (setting?.entries ?? []).map(\.name)
            return [known.first { Self.words($0) == name } ?? names.name(fromVariable: name)]
                + path
        }
        return nil
    }

    /// The rest of `words` after `head` and a `_`; nil if `words` does not start with `head`.
    private static func rest(of words: String, after head: String) -> String? {
        if words == head { return "" }
        return words.hasPrefix(head + "_") ? String(words.dropFirst(head.count + 1)) : nil
    }

    /// Whether Kubernetes has set this variable for a Service, such as `<SERVICE>_SERVICE_HOST` and
    /// `<SERVICE>_PORT`. A Service called `lamplighter` must not stop the worker.
    private static func isServiceLink(_ name: String) -> Bool {
        let link = /.*_(SERVICE_HOST|SERVICE_PORT(_.+)?|PORT(_[0-9]+_(TCP|UDP|SCTP)(_.+)?)?)/
        return name.wholeMatch(of: link) != nil
    }

    /// Whether it is what Kubernetes puts there, such as `tcp://10.0.0.7:8443`.
    private static func isAddress(_ text: String) -> Bool {
        ["tcp://", "udp://", "sctp://"].contains { text.hasPrefix($0) }
    }

    private func unknown(_ name: String) -> ConfigurationProblem {
        let all = KeyShape(name: "", summary: "", form: root).values
        let known = all.map { Self.name(of: Array($0.path.dropFirst())) }
        return ConfigurationProblem(
            path: "", origin: .variable(name),
            complaint: Complaint(
                wrong: "belongs to no key",
                remedy: "the nearest known one is "
                    + (Spelling.nearest(to: name, among: known) ?? Self.prefix)))
    }
}

extension Setting {
    fileprivate func entry(_ name: String) -> Setting? {
        entries?.first { $0.name == name }?.value
    }
}

extension NameRule {
    fileprivate func name(fromVariable words: String) -> String {
        String(words.lowercased().map { $0 == "_" ? variableSeparator : $0 })
    }
}
