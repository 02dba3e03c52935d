// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import Logging
package import PushModel

/// One line of the log, as text for people or as JSON for collectors.
package struct LogLine {
    package var time: WallTime
    package var level: Logger.Level
    package var message: String
    package var metadata: Logger.Metadata

    package init(
        time: WallTime, level: Logger.Level, message: String, metadata: Logger.Metadata
    ) {
        self.time = time
        self.level = level
        self.message = message
        self.metadata = metadata
    }

    private var sorted: [(key: String, value: Logger.MetadataValue)] {
        metadata.sorted { $0.key < $1.key }
    }

    // MARK: JSON

    /// - Parameter source: who logs; members of the object itself, so that a collector of many
    ///   workers' lines can tell them apart.
    package func json(source: LogSource) -> String {
        var members: [(String, JSONText)] = [
            ("time", .string(time.rfc3339)), ("level", .string(level.rawValue)),
        ]
        if let worker = source.worker { members.append(("worker", .string(worker))) }
        if let group = source.group { members.append(("group", .string(group))) }
        members.append(("message", .string(message)))
        if !metadata.isEmpty {
            members.append(("metadata", .object(sorted.map { ($0.key, Self.json($0.value)) })))
        }
        return JSONText.object(members).line
    }

    /// A number or a truth value that was given as one stays one. A string stays a string, whatever
    /// it looks like: a member whose type depends on its value cannot be indexed.
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

    /// `2026-11-21T06:12:00.123Z warning pushes wait: … of="production/home"`
    package var text: String {
        sorted.reduce("\(time.rfc3339) \(level.rawValue) \(message.printable)") {
            "\($0) \($1.key.printable)=\(Self.word($1.value))"
        }
    }

    /// In quotes where its end could not be seen without; several as JSON.
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

/// Who writes a log: what each line of JSON says beside its message.
package struct LogSource: Sendable {
    /// Tells this process from the others of its group.
    package var worker: String?
    package var group: String?

    package init(worker: String? = nil, group: String? = nil) {
        self.worker = worker
        self.group = group
    }
}

extension Configuration {
    /// The static identity where one is configured, which outlives the process; otherwise the host's
    /// name, which in Kubernetes is the pod's, and the process.
    package func workerName(host: String, process: Int32) -> String {
        kafka.groupInstanceID ?? "\(host)-\(process)"
    }
}
