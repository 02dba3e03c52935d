// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// How far a partition of a compacted topic has been read.
package struct TablePosition: Hashable, Sendable {
    /// The last record that was read, by which the log is recognised: a topic that was deleted and
    /// created again, or has lost its end, has another record there.
    package struct LastRecord: Hashable, Sendable {
        package var offset: Int64
        /// Of the record's key and timestamp.
        package var hash: StableHash.Value

        package init(offset: Int64, hash: StableHash.Value) {
            self.offset = offset
            self.hash = hash
        }
    }

    /// The offset of the first record that has not been read.
    package var next: Int64
    /// Nil if no record has ever been read.
    package var last: LastRecord?

    package init(next: Int64, last: LastRecord?) {
        self.next = next
        self.last = last
    }
}
