// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Yams

extension Setting {
    /// The largest file accepted. A file with every key has a few kilobytes.
    static let fileBytesMax = 1 << 20
    /// The most values in a file, after aliases have been expanded.
    static let valuesMax = 50_000

    /// Reads one YAML document. An empty one is an empty map.
    ///
    /// The parser's message is kept, but not the line that it quotes, which may hold a secret.
    init(yaml text: String) throws(ConfigurationProblem) {
        // An editor's byte order mark is no part of the first key.
        let text =
            text.unicodeScalars.first == "\u{FEFF}" ? String(text.unicodeScalars.dropFirst()) : text
        if YAMLAliases.mayUnfoldInKeys(text) {
            throw Self.unreadable("has aliases in its keys, and too many of them", line: nil)
        }
        let root: Node?
        do {
            root = try compose(yaml: text)
        } catch let error as YamlError {
            throw Self.problem(error)
        } catch {
            throw Self.unreadable("is not YAML", line: nil)
        }
        var values = 0
        self = try Self.convert(root ?? .mapping([:]), values: &values)
        if entries == nil {
            throw Self.unreadable("holds \(shapeName) instead of a map of sections", line: 1)
        }
    }

    private static func convert(
        _ node: Node, values: inout Int
    ) throws(ConfigurationProblem) -> Setting {
        let line = node.mark?.line ?? 1
        values += 1
        guard values <= valuesMax else {
            throw unreadable("unfolds to more than \(valuesMax) values", line: line)
        }
        let content: Content
        var isQuoted = false
        switch node {
        case .scalar(let scalar):
            let isEmpty = scalar.style == .plain && ["", "~", "null"].contains(scalar.string)
            content = isEmpty ? .absent : .scalar(scalar.string)
            isQuoted = ![.plain, .any].contains(scalar.style)
        case .sequence(let sequence):
            var items: [Setting] = []
            for item in sequence { items.append(try convert(item, values: &values)) }
            content = .list(items)
        case .mapping(let mapping):
            var entries: [Entry] = []
            for (key, value) in mapping {
                guard let name = key.scalar?.string else {
                    throw unreadable("has a key that is not text", line: key.mark?.line)
                }
                entries.append(Entry(name: name, value: try convert(value, values: &values)))
            }
            content = .map(entries)
        case .alias:
            throw unreadable("has an alias to nothing", line: line)
        }
        return Setting(content: content, origin: .line(line), isQuoted: isQuoted)
    }

    private static func problem(_ error: YamlError) -> ConfigurationProblem {
        switch error {
        case .scanner(_, let problem, let mark, _), .parser(_, let problem, let mark, _),
            .composer(_, let problem, let mark, _):
            unreadable("is not YAML: \(problem) (column \(mark.column))", line: mark.line)
        case .reader(let problem, _, _, _):
            unreadable("is not YAML: \(problem)", line: nil)
        case .duplicatedKeysInMapping(let duplicates, let context):
            ConfigurationProblem(
                path: "", origin: .line(context.mark.line),
                complaint: Complaint(
                    wrong: "this map has \(duplicates.sorted().joined(separator: ", ")) twice",
                    remedy: "keep one of them"))
        default:
            unreadable("is not YAML", line: nil)
        }
    }

    private static func unreadable(_ wrong: String, line: Int?) -> ConfigurationProblem {
        ConfigurationProblem(
            path: "", origin: line.map { .line($0) },
            complaint: Complaint(
                wrong: "the file \(wrong)",
                remedy: "see docs/configuration.md for its form"))
    }
}
