// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FlatMemory
package import PushModel

/// What an index in a file was made of, so that whoever loads it can tell whether it is still true and
/// where to read on.
package struct SnapshotStamp: Equatable, Sendable {
    /// A compacted topic, all partitions of which had been read.
    package struct Table: Equatable, Sendable {
        package var topic: String
        package var partitions: [TablePosition]

        package init(topic: String, partitions: [TablePosition]) {
            self.topic = topic
            self.partitions = partitions
        }
    }

    /// The ID of the Kafka cluster.
    package var cluster: String
    /// Of registrations and of suppressions, as of one instant.
    package var tables: [Table]
    /// Everything that brokers had recorded before this time of theirs is in the index.
    package var asOf: WallTime
    /// Of the routing and whatever else decides what a record becomes in the index.
    package var routing: StableHash.Value
    /// For how long the tombstones of all tables lasted when its writer began; nil where Kafka did not say.
    /// If that is raised later, those are gone all the same that were removed before.
    package var tombstonesLast: Duration?

    package init(
        cluster: String, tables: [Table], asOf: WallTime, routing: StableHash.Value,
        tombstonesLast: Duration?
    ) {
        self.cluster = cluster
        self.tables = tables
        self.asOf = asOf
        self.routing = routing
        self.tombstonesLast = tombstonesLast
    }

    /// Identifies the apps, routes and settings with which records are applied, each with its number.
    package static func fingerprint(
        of routing: RoutingTable, furtherLists: FurtherLists
    ) -> StableHash.Value {
        var fields = FieldWriter()
        fields.append(UInt32(routing.apps.count))
        for app in routing.apps { fields.append(app) }
        for route in routing.routes {
            fields.append(route.environment.rawValue)
            fields.append(route.app.rawValue)
            fields.append(route.tokenClass.rawValue)
            fields.append(route.apnsTopic)
        }
        fields.append(furtherLists.rawValue)
        var hash = StableHash()
        fields.bytes.withUnsafeBytes { hash.combine($0) }
        return hash.finish()
    }
}

extension SnapshotStamp {
    private static let nameBytesMax = 1024
    private static let tablesMax = 16

    func write(to fields: inout FieldWriter) {
        fields.append(cluster)
        fields.append(asOf.milliseconds)
        fields.append(tombstonesLast.map { $0.components.seconds &* 1000 } ?? -1)
        fields.append(routing.high)
        fields.append(routing.low)
        fields.append(UInt32(tables.count))
        for table in tables {
            fields.append(table.topic)
            fields.append(UInt32(table.partitions.count))
            for position in table.partitions {
                fields.append(position.next)
                fields.append(position.last?.offset ?? -1)
                fields.append(position.last?.hash.high ?? 0)
                fields.append(position.last?.hash.low ?? 0)
            }
        }
    }

    init(from fields: inout FieldReader) throws(SnapshotFault) {
        cluster = try fields.text(most: Self.nameBytesMax)
        asOf = WallTime(milliseconds: try fields.int64())
        let milliseconds = try fields.int64()
        tombstonesLast = milliseconds < 0 ? nil : .milliseconds(milliseconds)
        routing = StableHash.Value(high: try fields.uint64(), low: try fields.uint64())
        tables = []
        for _ in 0..<(try fields.count(ofAtLeast: 8, most: Self.tablesMax)) {
            var table = Table(topic: try fields.text(most: Self.nameBytesMax), partitions: [])
            for _ in 0..<(try fields.count(ofAtLeast: 32)) {
                table.partitions.append(try Self.position(from: &fields))
            }
            tables.append(table)
        }
    }

    private static func position(
        from fields: inout FieldReader
    ) throws(SnapshotFault) -> TablePosition {
        let (next, offset) = (try fields.int64(), try fields.int64())
        let hash = StableHash.Value(high: try fields.uint64(), low: try fields.uint64())
        guard next >= 0, offset < next, offset >= -1 else {
            throw SnapshotFault("it has an offset that cannot be")
        }
        return TablePosition(
            next: next,
            last: offset < 0 ? nil : TablePosition.LastRecord(offset: offset, hash: hash))
    }
}
