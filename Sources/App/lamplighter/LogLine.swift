// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Configuration
import Logging
import PushModel
import Worker

/// One line of the log, as text for people or as JSON for collectors.
struct LogLine {
    var time: WallTime
    var level: Logger.Level
    var message: String
    var metadata: Logger.Metadata

    private var sorted: [(key: String, value: Logger.MetadataValue)] {
        metadata.sorted { $0.key < $1.key }
    }

    // MARK: JSON

    /// The line as one JSON object.
    ///
    /// - Parameter source: the process that logs. Its names are members of the object itself, so
    ///   that a collector can tell the lines of many workers apart.
    func json(source: LogSource) -> String {
        var members: [(String, JSONText)] = [
            ("time", .string(time.rfc3339)), ("level", .string(level.rawValue)),
        ]
        if let worker = source.worker { members.append(("worker", .string(worker))) }
        if let version = source.version { members.append(("version", .string(version))) }
        if let group = source.group { members.append(("group", .string(group))) }
        members.append(("message", .string(message)))
        if !metadata.isEmpty {
            members.append(("metadata", .object(sorted.map { ($0.key, Self.json($0.value)) })))
        }
        return JSONText.object(members).line
    }

    /// A metadata value as JSON. A number or truth value that was logged as such stays one. A
    /// string stays a string, whatever it looks like: collectors cannot index a member whose type
    /// varies.
    private static func json(_ value: Logger.MetadataValue) -> JSONText {
        switch value {
        case .string(let text): .string(text)
        case .array(let values): .array(values.map(json))
        case .dictionary(let values):
            .object(values.sorted { $0.key < $1.key }.map { ($0.key, json($0.value)) })
        case .stringConvertible(let value as any BinaryInteger): .literal("\(value)")
        case .stringConvertible(let value as Double) where value.isFinite: .literal("\(value)")
        case .stringConvertible(let value as Bool): .literal("\(value)")
        case .stringConvertible(let value): .string("\(value)")
        }
    }

    // MARK: Text

    /// The line as text: `2026-11-21T06:12:00.123Z warning pushes wait of="production/home"`.
    var text: String {
        sorted.reduce("\(time.rfc3339) \(level.rawValue) \(message.printable)") {
            "\($0) \($1.key.printable)=\(Self.word($1.value))"
        }
    }

    /// A metadata value as text: in quotes if its end would be unclear without; an array or a
    /// dictionary as JSON.
    private static func word(_ value: Logger.MetadataValue) -> String {
        switch value {
        case .array, .dictionary: return json(value).line
        case .string, .stringConvertible: break
        }
        let text = "\(value)".printable
        guard text.isEmpty || text.contains(where: { " \"=".contains($0) }) else { return text }
        return "\"" + text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"") + "\""
    }
}
