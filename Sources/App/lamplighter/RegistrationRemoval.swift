// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Configuration
import KafkaLog
import PushModel
import Worker

/// Removes whole registrations, and then the suppressions that are no longer needed.
final class RegistrationRemoval {
    private let configuration: Configuration
    private let isDryRun: Bool
    private let log: TopicEditor
    private var census: RegistrationCensus
    private var removed: Set<[UInt8]> = []
    private var removedSuppressions = 0

    private static let batch = 500

    init(
        _ configuration: Configuration, deadFor: Duration, isDryRun: Bool,
        isWanted: @escaping @Sendable ([UInt8]) -> Bool
    ) throws {
        self.configuration = configuration
        self.isDryRun = isDryRun
        census = RegistrationCensus(
            configuration, deadFor: deadFor, now: RecordWriter.now().wall, isWanted: isWanted)
        log = try TopicEditor(
            settings: configuration.kafka.clientSettings,
            topic: configuration.kafka.topics.registrations,
            logger: ConfigurationOption.logger(configuration.log))
        try TopicSweep(configuration, topic: configuration.kafka.topics.suppressions).run {
            record in
            census.suppressionRecord(
                key: record.key, value: record.value, partition: record.partition,
                timestamp: WallTime(milliseconds: record.timestampMilliseconds))
            return true
        }
        try log.readToEnd { count($0) }
    }

    func close() { log.close() }

    private func count(_ record: borrowing KafkaRecord) {
        census.registrationRecord(
            key: record.key, value: record.value, partition: record.partition,
            timestamp: WallTime(milliseconds: record.timestampMilliseconds))
    }

    // MARK: Registrations

    /// Removes dead registrations. If an app writes one of them meanwhile, that record is restored.
    func removeDead() throws {
        try remove(census.deadRegistrations(), stillThere: { $0.deadRegistrations() }) { _, value in
            value.map { .some($0) }
        }
    }

    /// Removes the wanted registrations and the suppressions of their tokens. What an app writes
    /// meanwhile is removed too.
    func removeWanted() throws {
        let entries = census.wantedRegistrations()
        let tokens = entries.reduce(into: Set()) { $0.formUnion($1.tokens) }
        try remove(entries, stillThere: { $0.wantedRegistrations() }) { _, _ in nil }
        try removeSuppressions(census.abandonedSuppressions(without: removed, of: tokens))
    }

    private func remove(
        _ entries: [RegistrationCensus.Entry],
        stillThere: (borrowing RegistrationCensus) -> [RegistrationCensus.Entry],
        revise: (_ key: [UInt8], _ value: [UInt8]?) -> [UInt8]??
    ) throws {
        var rest = entries[...]
        while !rest.isEmpty {
            let batch = rest.prefix(Self.batch)
            rest = rest.dropFirst(Self.batch)
            guard !isDryRun else {
                for entry in batch { tell(entry) }
                continue
            }
            // Apps may have registered since.
            log.readOn { count($0) }
            let keys = Set(batch.map(\.key))
            let left = stillThere(census).filter { keys.contains($0.key) }
            var kept: Set<[UInt8]> = []
            try log.write(
                left.map {
                    TopicEditor.Change(key: $0.key, partition: $0.partition, value: nil)
                },
                { count($0) }
            ) { key, value in
                let revised = revise(key, value)
                if revised != nil { kept.insert(key) }
                return revised
            }
            for entry in left where !kept.contains(entry.key) { tell(entry) }
        }
    }

    private func tell(_ entry: RegistrationCensus.Entry) {
        removed.insert(entry.key)
        let names = entry.tokens.map { TokenName($0.bytes).description }.sorted()
        let key = TerminalText.visible(entry.key)
        print("\(verb)  \(key)  tokens \(names.joined(separator: ","))")
    }

    // MARK: Suppressions

    func removeSuppressions() throws {
        if !isDryRun { log.readOn { count($0) } }
        try removeSuppressions(census.abandonedSuppressions(without: isDryRun ? removed : []))
    }

    private func removeSuppressions(_ suppressions: [RegistrationCensus.Standing]) throws {
        if !isDryRun {
            var stream = try RecordStream(
                configuration, topics: [configuration.kafka.topics.suppressions])
            for suppression in suppressions {
                try stream.write(
                    OwnedRecord(
                        topic: 0, partition: suppression.partition, key: suppression.key, value: nil
                    ))
            }
            try stream.finish()
        }
        removedSuppressions += suppressions.count
    }

    private var verb: String { isDryRun ? "would remove" : "removed" }

    var summary: String {
        let unreadable = census.unreadable
        return "\(verb) \(removed.count.counted("registration")) and "
            + removedSuppressions.counted("suppression")
            + (unreadable == 0 ? "" : "; \(unreadable.counted("registration")) unreadable")
    }
}
