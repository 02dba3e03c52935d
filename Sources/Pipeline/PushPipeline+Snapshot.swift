// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import Audience
package import FlatMemory
internal import Intake
package import PushModel

/// An index that was read from a file, and what the pipeline keeps beside it.
package struct LoadedIndex: ~Copyable {
    package let stamp: SnapshotStamp
    let audience: Audience
    let handlers: HandlerNames

    /// Reads the rest of a snapshot, and checks all of it.
    ///
    /// - Parameter stamp: of the snapshot.
    package init(
        _ reader: consuming SnapshotReader, routing: RoutingTable, settings: PipelineSettings
    ) throws(SnapshotFault) {
        let stamp = reader.stamp
        let handlers = try HandlerNames(notes: reader.notes, apps: routing.apps.count)
        audience = try reader.audience(
            routing: routing, furtherLists: settings.events.furtherLists)
        self.stamp = stamp
        self.handlers = handlers
    }
}

extension PushPipeline {
    /// Begins with an index that was loaded. To be called before any record is read.
    package mutating func begin(with loaded: consuming LoadedIndex) {
        precondition(
            state.counters.registrationsRead == 0,
            "the index is loaded before the first record is read")
        // As a replay leaves it: behind the last record, beyond which the log may hold what is no record.
        late.registrations.began(
            at: loaded.stamp.tables[0].partitions.map { ($0.last?.offset ?? -1) + 1 })
        index.handlers = loaded.handlers
        state.audience = loaded.audience
    }

    /// Identifies what decides, besides the records, what the index becomes.
    package static func fingerprint(
        routing: RoutingTable, settings: PipelineSettings
    ) -> StableHash.Value {
        SnapshotStamp.fingerprint(of: routing, furtherLists: settings.events.furtherLists)
    }

    /// About the bytes that the index takes in a file.
    package var indexFileBytes: Int { state.audience.snapshotBytes }

    /// The index knows of the worker's own suppressions before the topic does, which may never know of
    /// them. A file of it would keep tokens from pushes that no other worker leaves out, and nobody
    /// could lift that.
    package var suppressionsFault: SnapshotFault? {
        let waiting = state.outbox.tickets.usage(of: .suppressions).count
        let refused = state.outbox.suppressionsGivenUp
        if refused > 0 {
            return SnapshotFault(
                "Kafka has refused \(refused.counted("suppression")) for good, of which the index "
                    + "knows")
        }
        guard waiting > 0 else { return nil }
        return SnapshotFault(
            "Kafka has not acknowledged \(waiting.counted("suppression")), of which the index "
                + "knows")
    }

    /// Writes the index to a file, which is to say what the topics say: it throws where they do not
    /// have all suppressions. It takes a second for a gigabyte and more, so not while pushes are
    /// sent.
    ///
    /// - Parameter sink: takes at most a mebibyte at a time.
    package mutating func writeIndex(
        _ stamp: SnapshotStamp, to sink: @escaping ChecksummedOutput.Sink
    ) throws(SnapshotFault) {
        if let suppressionsFault { throw suppressionsFault }
        state.audience.reclaimRemoved()
        try state.audience.write(stamp, notes: index.handlers.notes, to: sink)
    }
}

extension HandlerNames {
    /// The names in bytes, for `init(notes:apps:)`.
    var notes: [UInt8] {
        var fields = FieldWriter()
        for app in apps {
            fields.append(UInt16(app.isFull ? 1 : 0))
            fields.append(UInt32(app.names.count))
            for name in app.names { fields.append(name) }
        }
        return fields.bytes
    }

    init(notes: [UInt8], apps count: Int) throws(SnapshotFault) {
        self.init(apps: count)
        var fields = FieldReader(notes)
        for app in 0..<count {
            apps[app].isFull = try fields.uint16() == 1
            for _ in 0..<(try fields.count(ofAtLeast: 4, most: Self.countMax)) {
                apps[app].names.append(try fields.value(most: Self.nameBytesMax))
            }
        }
        guard fields.left == 0 else { throw SnapshotFault("it has notes that nobody understands") }
    }

    /// The longest part of a key.
    private static let nameBytesMax = 128
}
