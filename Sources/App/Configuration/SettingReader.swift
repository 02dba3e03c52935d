// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// Reads the written values along the key table and collects all problems.
struct SettingReader {
    private(set) var problems: [ConfigurationProblem] = []
    private var path: [String] = []
    /// The paths of all values in the table, to recognise a key that was written in the wrong
    /// place.
    private let knownPaths: [[String]]

    init(knownPaths: [[String]]) {
        self.knownPaths = knownPaths
    }

    mutating func report(_ origin: Setting.Origin?, _ complaint: Complaint) {
        problems.append(
            ConfigurationProblem(path: Self.shown(path), origin: origin, complaint: complaint))
    }

    mutating func report(_ problem: ConfigurationProblem) { problems.append(problem) }

    /// Reports a problem with the key at `path`.
    mutating func report(_ path: [String], wrong: String, remedy: String) {
        problems.append(
            ConfigurationProblem(
                path: Self.shown(path), origin: nil,
                complaint: Complaint(wrong: wrong, remedy: remedy)))
    }

    /// Whether no problem was found so far at this path or below it.
    func isSound(_ path: [String]) -> Bool {
        let prefix = Self.shown(path)
        return !problems.contains {
            $0.path == prefix || $0.path.hasPrefix(prefix + ".") || $0.path.hasPrefix(prefix + "[")
        }
    }

    /// Reads the setting as this type. If that fails, reports it and returns nil.
    mutating func value<Value>(of setting: Setting, as type: SettingType<Value>) -> Value? {
        do throws(Complaint) {
            return try type.read(setting)
        } catch {
            // Where something was found at this path before, such as a variable that nobody fills
            // in, this is the same mistake, and that has told more of it.
            if isSound(path) { report(setting.origin, error) }
            return nil
        }
    }

    mutating func section<Section>(
        _ keys: [ConfigurationKey<Section>], into section: inout Section, from setting: Setting?
    ) {
        guard let entries = entries(of: setting) else { return }
        for key in keys {
            path.append(key.name)
            let written = entries.first { $0.name == key.name }?.value
            key.read(&section, written?.content == .absent ? nil : written, &self)
            path.removeLast()
        }
        let names = keys.map(\.name)
        for entry in entries where !names.contains(entry.name) {
            path.append(entry.name)
            report(entry.value.origin, unknown(entry.name, among: names))
            path.removeLast()
        }
    }

    /// Reads a map whose names the user chooses; nil if it was not written. Entries that cannot be
    /// read are reported and left out.
    mutating func map<Element>(
        names: NameRule, from setting: Setting?,
        reading element: (Setting, inout SettingReader) -> Element?
    ) -> [String: Element]? {
        guard let setting, let entries = entries(of: setting) else { return nil }
        if entries.count > names.countMax {
            report(
                setting.origin,
                Complaint(
                    wrong: "has \(entries.count) entries",
                    remedy: "at most \(names.countMax) are allowed"))
        }
        var elements: [String: Element] = [:]
        for entry in entries {
            path.append(entry.name)
            defer { path.removeLast() }
            if names.allows(entry.name) {
                elements[entry.name] = element(entry.value, &self)
            } else {
                report(
                    entry.value.origin,
                    Complaint(
                        wrong: "has a name that cannot be used here",
                        remedy: "the name must be \(names.notation)"))
            }
        }
        return elements
    }

    /// The path as text, with names that contain a dot in brackets:
    /// `kafka.events[lamplighter.events].app`.
    static func shown(_ path: [String]) -> String {
        path.reduce("") { shown, name in
            if name.contains(".") { return "\(shown)[\(name)]" }
            return shown.isEmpty ? name : "\(shown).\(name)"
        }
    }

    private mutating func entries(of setting: Setting?) -> [Setting.Entry]? {
        guard let setting else { return [] }
        if let entries = setting.entries { return entries }
        report(
            setting.origin,
            Complaint(
                wrong: "is \(setting.shapeName)", remedy: "must be a map of names and values"))
        return nil
    }

    private func unknown(_ name: String, among names: [String]) -> Complaint {
        let elsewhere = knownPaths.filter { $0.last?.lowercased() == name.lowercased() }
        let remedy: String
        if let near = Spelling.nearest(to: name, among: names), Spelling.isSlip(name, for: near) {
            remedy = "did you mean \"\(near)\"?"
        } else if let path = elsewhere.first {
            remedy = "did you mean \(Self.shown(path))?"
        } else {
            let near = Spelling.nearest(to: name, among: names) ?? ""
            remedy = "the nearest known one is \"\(near)\", all are in docs/configuration.md"
        }
        return Complaint(wrong: "is no key of this section", remedy: remedy)
    }
}
