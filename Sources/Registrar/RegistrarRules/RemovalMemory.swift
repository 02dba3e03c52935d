// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// The latest removals in a partition, which a record of a former owner may follow in the log, or one that
/// is read later than the removal was acknowledged.
struct RemovalMemory<Name: Hashable> {
    private let countMax: Int
    private var standings: [Name: RecordStanding] = [:]
    /// The removals in the order in which they were noted, those that are over included.
    private var noted: [(name: Name, offset: Int64)] = []
    private var first = 0

    init(countMax: Int = 4096) { self.countMax = countMax }

    subscript(name: Name) -> RecordStanding? { standings[name] }

    mutating func forget(_ name: Name) { standings[name] = nil }

    /// - Parameter readTo: the end of what was read. A removal behind it is kept whatever the bound is:
    ///   there are no more of these than writes under way.
    mutating func note(_ name: Name, _ standing: RecordStanding, readTo: Int64) {
        standings[name] = standing
        noted.append((name, standing.offset))
        while noted.count - first > countMax {
            let oldest = noted[first]
            if standings[oldest.name]?.offset == oldest.offset {
                guard oldest.offset < readTo else { break }
                standings[oldest.name] = nil
            }
            first += 1
        }
        if first > countMax {
            noted.removeFirst(first)
            first = 0
        }
    }
}
