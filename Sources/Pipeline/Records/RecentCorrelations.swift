// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

/// The `id` and `traceparent` of the latest events that had one, for the dead letters of their
/// pushes. A push itself keeps only where its event stands.
///
/// The memory is bounded and is allocated with the first such event: 65,536 events, and 8 MiB of
/// text in a ring. Of an event that newer ones have displaced, a dead letter has the position alone.
struct RecentCorrelations {
    private var rows: [Row] = []
    private var text: [UInt8] = []
    /// How many bytes were ever written to the ring.
    private var written: UInt64 = 0
    private let rowsMax: Int
    private let textMax: Int

    private struct Row: BitwiseCopyable {
        var position = RecordPosition(topic: 0, partition: 0, offset: -1)
        /// The place of the texts, counted as `written` counts.
        var start: UInt64 = 0
        var idBytes: UInt16 = 0
        var traceparentBytes: UInt16 = 0
    }

    /// - Parameter rowsMax: a power of two.
    init(rowsMax: Int = 1 << 16, textMax: Int = 8 << 20) {
        precondition(
            rowsMax > 0 && rowsMax & (rowsMax - 1) == 0, "the count of rows is a power of two")
        precondition(
            textMax >= Self.textBytesMax, "there is room for the text of at least one event")
        self.rowsMax = rowsMax
        self.textMax = textMax
    }

    /// The memory; none before the first event that has an `id` or a `traceparent`.
    var bytes: Int { rows.count * MemoryLayout<Row>.stride + text.count }

    private static let textBytesMax = Correlation.idBytesMax + TraceContext.textBytesMax

    /// Keeps what identifies an event. A text that is too long is left out.
    mutating func note(
        id: UnsafeRawBufferPointer?, traceparent: UnsafeRawBufferPointer?,
        of position: RecordPosition
    ) {
        let id = id.flatMap { $0.count <= Correlation.idBytesMax ? $0 : nil }
        let traceparent = traceparent.flatMap { $0.count <= TraceContext.textBytesMax ? $0 : nil }
        let (idBytes, traceparentBytes) = (id?.count ?? 0, traceparent?.count ?? 0)
        guard idBytes + traceparentBytes > 0 else { return }
        if rows.isEmpty {
            rows = Array(repeating: Row(), count: rowsMax)
            text = Array(repeating: 0, count: textMax)
        }
        let number = row(of: position)
        // An event with several kinds asks once for each.
        if rows[number].position == position, isKept(rows[number]) { return }
        // The texts of one event are not divided.
        let rest = UInt64(textMax) - written % UInt64(textMax)
        if rest < UInt64(idBytes + traceparentBytes) { written += rest }
        rows[number] = Row(
            position: position, start: written, idBytes: UInt16(idBytes),
            traceparentBytes: UInt16(traceparentBytes))
        if let id { append(id) }
        if let traceparent { append(traceparent) }
    }

    /// What identifies the event at this position, if it is still known.
    func correlation(of position: RecordPosition) -> Correlation {
        guard !rows.isEmpty else { return .none }
        let row = rows[row(of: position)]
        guard row.position == position, isKept(row) else { return .none }
        return text.withUnsafeBytes { text in
            let start = Int(row.start % UInt64(textMax))
            let middle = start + Int(row.idBytes)
            return Correlation(
                checking: UnsafeRawBufferPointer(rebasing: text[start..<middle]),
                traceparent: UnsafeRawBufferPointer(
                    rebasing: text[middle..<middle + Int(row.traceparentBytes)]))
        }
    }

    private mutating func append(_ bytes: UnsafeRawBufferPointer) {
        let start = Int(written % UInt64(textMax))
        text.withUnsafeMutableBytes { text in
            UnsafeMutableRawBufferPointer(rebasing: text[start..<start + bytes.count])
                .copyMemory(from: bytes)
        }
        written += UInt64(bytes.count)
    }

    /// Whether the ring has not been written over since.
    private func isKept(_ row: Row) -> Bool {
        row.position.offset >= 0 && written - row.start <= UInt64(textMax)
    }

    /// Neighbouring offsets of a partition have different rows; partitions begin anywhere.
    private func row(of position: RecordPosition) -> Int {
        let partition =
            UInt64(position.topic) << 32 | UInt64(UInt32(bitPattern: position.partition))
        let start = partition &* 0x9E37_79B9_7F4A_7C15 >> 32
        return Int((start &+ UInt64(bitPattern: position.offset)) & UInt64(rowsMax - 1))
    }
}
