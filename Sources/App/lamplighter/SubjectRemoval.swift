// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Configuration
import Foundation
import KafkaLog
import PushModel

/// Removes one subject from every registration that shows it, and keeps everything else in them,
/// members of later releases included.
final class SubjectRemoval {
    private let subject: String
    private let scope: RegistrationScope
    private let isDryRun: Bool
    private let log: TopicEditor
    /// The changes to write, by key.
    private var changes: [[UInt8]: TopicEditor.Change] = [:]
    private var changed = 0

    private static let batch = 500

    init(
        _ configuration: Configuration, subject: String, scope: RegistrationScope, isDryRun: Bool
    ) throws {
        self.subject = subject
        self.scope = scope
        self.isDryRun = isDryRun
        log = try TopicEditor(
            settings: configuration.kafka.clientSettings,
            topic: configuration.kafka.topics.registrations,
            logger: ConfigurationOption.logger(configuration.log))
        try log.readToEnd { look($0) }
    }

    func close() { log.close() }

    private func look(_ record: borrowing KafkaRecord) {
        guard let key = record.key.map({ Array($0) }), scope.covers(key) else { return }
        let value = record.value.flatMap { Self.value(Array($0), without: subject) }
        changes[key] = value.map { value in
            TopicEditor.Change(key: key, partition: record.partition, value: value)
        }
    }

    /// Writes the changes.
    ///
    /// - Returns: a summary in one sentence.
    func run() throws -> String {
        for key in changes.keys.sorted(by: { $0.lexicographicallyPrecedes($1) }) where isDryRun {
            print("would change  \(TerminalText.visible(key))")
        }
        if isDryRun { return "would change \(changes.count.counted("registration"))" }
        while !changes.isEmpty {
            log.readOn { look($0) }
            let batch = Array(changes.values.prefix(Self.batch))
            // Once a changed record is read back, `look` removes its change.
            try log.write(batch, { look($0) }) { [subject] _, value in
                // The change has replaced a newer registration, or undone a removal.
                .some(value.map { Self.value($0, without: subject) ?? $0 })
            }
            for change in batch { print("changed  \(TerminalText.visible(change.key))") }
            changed += batch.count
        }
        return "changed \(changed.counted("registration"))"
    }

    /// The value without the subject; nil if it does not have the subject or cannot be read.
    static func value(_ value: [UInt8], without subject: String) -> [UInt8]? {
        let object = try? JSONSerialization.jsonObject(with: Data(value)) as? [String: Any]
        guard var registration = object, var targets = registration["targets"] as? [Any] else {
            return nil
        }
        var isChanged = false
        for index in targets.indices {
            guard var target = targets[index] as? [String: Any],
                var shows = target["shows"] as? [Any]
            else { continue }
            for place in shows.indices {
                guard var show = shows[place] as? [String: Any],
                    let subjects = show["subjects"] as? [Any]
                else { continue }
                let left = subjects.filter { $0 as? String != subject }
                if left.count == subjects.count { continue }
                isChanged = true
                show["subjects"] = left
                shows[place] = show
            }
            target["shows"] = shows
            targets[index] = target
        }
        guard isChanged else { return nil }
        registration["targets"] = targets
        let data = try? JSONSerialization.data(
            withJSONObject: registration, options: [.withoutEscapingSlashes, .sortedKeys])
        return data.map { Array($0) }
    }
}
