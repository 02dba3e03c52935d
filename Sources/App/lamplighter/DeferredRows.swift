// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Configuration
import KafkaLog
import PushModel
import RecordFormats
import Worker

/// A push that waits in the deferred topic: what its latest record says.
struct DeferredRow {
    /// Where its latest record is.
    var partition: Int32
    var offset: Int64
    /// The offset up to which a tombstone must say that records of the key have ended. It is an
    /// earlier one where the owner has written the record again.
    var writtenAt: Int64
    var key: [UInt8]
    var route: RouteID
    var token: TokenName
    /// Without its payload.
    var push: DeferredPush
    /// Nil for "look again".
    var payloadType: PushType?
}

/// The pushes that wait in the deferred topic.
struct DeferredRows {
    private(set) var pushes: [DeferredRow] = []
    /// How many records are malformed or of apps that no credential serves.
    private(set) var unreadable = 0
    /// The last offsets that were read.
    let ends: TopicSweep.Ends
    let routing: RoutingTable
    private let configuration: Configuration

    private struct Place: Hashable {
        var partition: Int32
        var key: [UInt8]
    }

    init(_ configuration: Configuration) throws {
        self.configuration = configuration
        let routing = WorkerPlan(configuration).routing
        var byPlace: [Place: DeferredRow] = [:]
        var unreadable = 0
        ends = try Self.read(configuration, routing) { record, found in
            let place = Place(partition: record.partition, key: record.key.map { Array($0) } ?? [])
            switch found {
            case .push(let push): byPlace[place] = push
            case .tombstone where Self.ends(record, byPlace[place]): byPlace[place] = nil
            case .tombstone: break
            case .unreadable: unreadable += 1
            }
        }
        self.routing = routing
        self.unreadable = unreadable
        pushes = byPlace.values.sorted {
            ($0.push.notBefore, $0.partition, $0.offset)
                < ($1.push.notBefore, $1.partition, $1.offset)
        }
    }

    /// Lends the records of these pushes to `body`, payloads included.
    func forEachRecord(
        of wanted: [DeferredRow], _ body: (DeferredRow, DeferredPush) throws -> Void
    ) throws {
        var left: [TopicPartitionOffset: DeferredRow] = [:]
        for push in wanted { left[TopicPartitionOffset(push.partition, push.offset)] = push }
        var decoder = TokenRecordDecoder(routing: routing)
        var tokenKey = TokenKey()
        let sweep = TopicSweep(configuration, topic: configuration.kafka.topics.deferred)
        try sweep.run(upTo: ends) { record in
            let place = TopicPartitionOffset(record.partition, record.offset)
            guard let push = left.removeValue(forKey: place),
                let whole = try? decoder.deferred(
                    key: record.key, value: record.value, into: &tokenKey)
            else { return true }
            try body(push, whole)
            return !left.isEmpty
        }
    }

    private struct TopicPartitionOffset: Hashable {
        var partition: Int32
        var offset: Int64

        init(_ partition: Int32, _ offset: Int64) {
            self.partition = partition
            self.offset = offset
        }
    }

    // MARK: Reading

    private enum Found {
        case push(DeferredRow)
        case tombstone
        case unreadable
    }

    private static func read(
        _ configuration: Configuration, _ routing: RoutingTable,
        _ body: (borrowing KafkaRecord, Found) -> Void
    ) throws -> TopicSweep.Ends {
        var decoder = TokenRecordDecoder(routing: routing)
        var tokenKey = TokenKey()
        let sweep = TopicSweep(configuration, topic: configuration.kafka.topics.deferred)
        return try sweep.run { record in
            do throws(UnreadableRecord) {
                let push = try decoder.deferred(
                    key: record.key, value: record.value, into: &tokenKey)
                // One that says that a push was sent ends it as a tombstone would.
                let owed = push.flatMap { $0.isSent ? nil : $0 }
                body(record, owed.map { .push(waiting(record, $0, tokenKey)) } ?? .tombstone)
            } catch {
                if !error.isLeftOut { body(record, .unreadable) }
            }
            return true
        }
    }

    private static func waiting(
        _ record: borrowing KafkaRecord, _ push: DeferredPush, _ key: TokenKey
    ) -> DeferredRow {
        var push = push
        let type = push.payload?.type
        push.payload = nil
        return DeferredRow(
            partition: record.partition, offset: record.offset,
            writtenAt: number(record, DeferredPush.endedHeader).map { min($0, record.offset) }
                ?? record.offset,
            key: record.key.map { Array($0) } ?? [], route: key.route,
            token: TokenName(key.token), push: push, payloadType: type)
    }

    /// Whether this tombstone ends the push. One that names an earlier record, or an older payload,
    /// does not: what it hides is still owed, and its owner writes it again.
    private static func ends(_ tombstone: borrowing KafkaRecord, _ push: DeferredRow?) -> Bool {
        guard let push else { return false }
        if let readAt = number(tombstone, DeferredPush.endedPayloadHeader) {
            return push.push.payloadAt?.milliseconds ?? 0 <= readAt
        }
        return push.writtenAt <= number(tombstone, DeferredPush.endedHeader) ?? tombstone.offset
    }

    private static func number(_ record: borrowing KafkaRecord, _ header: String) -> Int64? {
        record.header(named: header).flatMap { Int64(String(decoding: $0, as: UTF8.self)) }
    }
}
