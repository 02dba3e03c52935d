// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// Keys that had another name before. The former name is still read, so that the
/// configuration need not change together with the upgrade; each use of one is logged at start.
enum FormerKeys {
    static let all: [(former: [String], key: [String])] = [
        (["kafka", "topics", "controls"], ["kafka", "topics", "restrictions"])
    ]

    /// Renames the variables of former keys. If a variable is set under both names, the new one
    /// wins.
    static func rename(in environment: [String: String]) -> [String: String] {
        var environment = environment
        for (former, key) in all {
            let value = environment.removeValue(forKey: EnvironmentVariables.name(of: former))
            let name = EnvironmentVariables.name(of: key)
            if let value, environment[name] == nil { environment[name] = value }
        }
        return environment
    }

    /// Moves values from former keys to the new ones. If both keys have a value, the former one is
    /// left for the reader to report.
    static func rename(in settings: inout Setting) {
        for (former, key) in all where settings.value(at: key[...]) == nil {
            guard let value = settings.take(at: former[...]) else { continue }
            settings.set(value, at: key[...])
        }
    }

    /// A sentence for each former name in the file or the environment.
    static func notices(_ settings: Setting, _ environment: [String: String]) -> [String] {
        all.flatMap { former, key -> [String] in
            let new = SettingReader.shown(key)
            var notices: [String] = []
            if settings.value(at: former[...]) != nil {
                notices.append("\(SettingReader.shown(former)) is called \(new) now: rename it")
            }
            let variable = EnvironmentVariables.name(of: former)
            if environment[variable] != nil {
                let name = EnvironmentVariables.name(of: key)
                notices.append("\(variable) is called \(name) now: rename it")
            }
            return notices
        }
    }
}

extension Setting {
    fileprivate func value(at path: ArraySlice<String>) -> Setting? {
        guard let name = path.first else { return self }
        return entries?.first { $0.name == name }?.value.value(at: path.dropFirst())
    }

    /// Removes the value at `path` and returns it; nil if there is none.
    fileprivate mutating func take(at path: ArraySlice<String>) -> Setting? {
        guard let name = path.first, var entries,
            let index = entries.firstIndex(where: { $0.name == name })
        else { return nil }
        let rest = path.dropFirst()
        let taken =
            rest.isEmpty ? entries.remove(at: index).value : entries[index].value.take(at: rest)
        content = .map(entries)
        return taken
    }
}
