// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

/// How far registrations have been applied, and the last ones that were, by their places in Kafka:
/// those that an earlier owner of a partition had not applied are found here.
struct RecentRegistrations {
    /// By partition: the offset of the next record to be applied.
    private(set) var cursor: [Int64] = []
    /// By partition: every registration from this offset on is kept.
    private var keptFrom: [Int64] = []
    private var rows: [Row] = []
    /// The oldest row, once there are `rowsMax`.
    private var oldest = 0
    private let rowsMax: Int

    private struct Row: BitwiseCopyable {
        let hash: (high: UInt64, low: UInt64)
        let offset: Int64
        let partition: Int32
    }

    init(rowsMax: Int) {
        precondition(rowsMax > 0, "at least one registration is kept")
        self.rowsMax = rowsMax
    }

    var bytes: Int { rows.capacity * MemoryLayout<Row>.stride }

    /// The index was loaded with all registrations below these offsets, by partition, none of which
    /// is kept here.
    mutating func began(at cursor: [Int64]) {
        precondition(
            self.cursor.isEmpty, "the index is loaded once, before any registration is applied")
        self.cursor = cursor
        keptFrom = cursor
    }

    /// A record was applied, or set aside.
    ///
    /// - Parameter registration: what it has brought; nil if it has brought nothing.
    mutating func applied(
        _ registration: StableHash.Value?, partition: Int32, offset: Int64
    ) {
        let index = Int(partition)
        while cursor.count <= index {
            cursor.append(0)
            keptFrom.append(0)
        }
        cursor[index] = offset + 1
        guard let registration else { return }
        let row = Row(
            hash: (registration.high, registration.low), offset: offset, partition: partition)
        if rows.count < rowsMax {
            rows.append(row)
        } else {
            keptFrom[Int(rows[oldest].partition)] = rows[oldest].offset + 1
            rows[oldest] = row
            oldest = oldest + 1 == rowsMax ? 0 : oldest + 1
        }
    }

    /// Whether this worker has applied none that a worker with this cursor had not.
    func isUpToDate(with other: [Int64]) -> Bool {
        cursor.indices.allSatisfy { Self.offset(other, $0) >= cursor[$0] }
    }

    /// Whether all registrations are kept that a worker with this cursor had not applied.
    func isComplete(since other: [Int64]) -> Bool {
        keptFrom.indices.allSatisfy { Self.offset(other, $0) >= keptFrom[$0] }
    }

    /// Calls `body` with each registration that is kept and that a worker with this cursor had not
    /// applied.
    func forEach(since other: [Int64], _ body: (StableHash.Value) -> Void) {
        for row in rows where row.offset >= Self.offset(other, Int(row.partition)) {
            body(StableHash.Value(high: row.hash.high, low: row.hash.low))
        }
    }

    /// A partition that the other worker did not know has had nothing applied.
    private static func offset(_ cursor: [Int64], _ partition: Int) -> Int64 {
        partition < cursor.count ? cursor[partition] : 0
    }
}
