// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// A configuration value as it was written, before anything is known about its key.
package struct Setting: Sendable, Equatable {
    package var content: Content
    package var origin: Origin
    /// Whether a scalar was in quotes, or in a block: then it is text, whatever it looks like.
    package var isQuoted = false

    package indirect enum Content: Sendable, Equatable {
        /// An empty value, `~` or `null`: the same as leaving the key out.
        case absent
        case scalar(String)
        case list([Setting])
        case map([Entry])
    }

    package struct Entry: Sendable, Equatable {
        package var name: String
        package var value: Setting
    }

    /// Where a value was written.
    package enum Origin: Sendable, Equatable, CustomStringConvertible {
        case line(Int)
        case variable(String)

        package var description: String {
            switch self {
            case .line(let number): "line \(number)"
            case .variable(let name): name
            }
        }
    }

    /// The name of the value's form, for a message about its type.
    var shapeName: String {
        switch content {
        case .absent: "empty"
        case .scalar: "a single value"
        case .list: "a list"
        case .map: "a map"
        }
    }

    /// The entries of a map; nil for a scalar or a list. An empty value is an empty map.
    var entries: [Entry]? {
        switch content {
        case .map(let entries): entries
        case .absent: []
        case .scalar, .list: nil
        }
    }

    /// Sets the value at `path`, replacing the one that is there and making the maps on the way. If
    /// another kind of value is where a map belongs, nothing is set: the reader reports it.
    mutating func set(_ value: Setting, at path: ArraySlice<String>) {
        guard let name = path.first else {
            self = value
            return
        }
        guard var entries else { return }
        let index =
            entries.firstIndex { $0.name == name }
            ?? {
                let empty = Setting(content: .absent, origin: value.origin)
                entries.append(Entry(name: name, value: empty))
                return entries.count - 1
            }()
        entries[index].value.set(value, at: path.dropFirst())
        content = .map(entries)
    }
}
