// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// A body that pushes share: one per event with a payload, however many tokens it goes to.
@usableFromInline
package struct BodyID: Hashable, Sendable, BitwiseCopyable {
    @usableFromInline package let rawValue: UInt32
    @inlinable package static var none: BodyID { BodyID(rawValue: .max) }

    @inlinable package init(rawValue: UInt32) { self.rawValue = rawValue }

    // Written by hand for the reason given at `PushType`.
    @inlinable
    package static func == (left: BodyID, right: BodyID) -> Bool {
        left.rawValue == right.rawValue
    }
}

/// The age of a payload among those of one key, of which only the newest matters.
///
/// Two payloads that this worker read are ordered by when it read them. A payload that another
/// worker read is known here from its record, and an event that is read after that record is
/// certainly newer. All others can be compared only by wall clocks, which differ between workers
/// and can be set back. "Look again" has no payload and is ordered by reading alone.
package struct BodyAge: Comparable {
    package fileprivate(set) var readAt: WallTime
    /// The planner's count when it read the event or, for another worker's payload, the record.
    fileprivate var sequence: UInt64
    package fileprivate(set) var isElsewhere: Bool
    /// `timestamp` of a Live Activity's payload, which Apple's devices go by; else 0.
    fileprivate var timestamp: Int64 = 0

    /// The age of a payload that this worker read.
    /// - Parameter sequence: the planner's count at that time.
    package static func here(_ readAt: WallTime, sequence: UInt64) -> BodyAge {
        BodyAge(readAt: readAt, sequence: sequence, isElsewhere: false)
    }

    /// The age of a payload that another worker read.
    /// - Parameter sequence: the planner's count when it read the record that says so.
    package static func elsewhere(_ readAt: WallTime, knownSince sequence: UInt64) -> BodyAge {
        BodyAge(readAt: readAt, sequence: sequence, isElsewhere: true)
    }

    package static func < (left: BodyAge, right: BodyAge) -> Bool {
        if left.timestamp != right.timestamp { return left.timestamp < right.timestamp }
        return switch (left.isElsewhere, right.isElsewhere) {
        case (false, false): left.sequence < right.sequence
        case (true, true): left.readAt < right.readAt
        // Of two with the same time, the one that was read here is the newer.
        case (true, false): right.sequence > left.sequence || left.readAt <= right.readAt
        case (false, true): left.sequence <= right.sequence && left.readAt < right.readAt
        }
    }
}

/// A payload as it is written to records.
package struct StoredPayload: Sendable {
    package var body: [UInt8]
    package var activity: ActivityChange?
    package var collapseID: String?
    package var readAt: WallTime
    /// The event that brought it.
    package var origin: RecordPosition?
    /// A subject of that event; empty where it is not known, and where it names an installation.
    package var subject: [UInt8]
    /// The installation that it names.
    package var installation: String?
}

/// Keeps payloads at fixed addresses, and counts their users, until the last push that needs one
/// has ended. Delivery reads them in place.
package struct BodyStore: ~Copyable {
    private var rows: [Row] = []
    private var free: [UInt32] = []
    /// The bytes of all bodies, collapse IDs and subjects kept; the owner bounds them.
    package private(set) var bytes = 0
    /// The bytes that each topic's events have brought, by its position; it ends with the last topic
    /// that has brought any.
    package private(set) var bytesByTopic: [Int] = []

    private struct Row {
        var body: UnsafeMutableBufferPointer<UInt8>
        var collapseID: UnsafeMutableBufferPointer<UInt8>
        var users: UInt32
        /// When the event with this body was read, by whichever worker.
        var readAt: WallTime
        /// The planner's count when it read the record of another worker that has this body.
        var knownSince: UInt64
        var activity: ActivityChange?
        var origin: RecordPosition?
        var isReplaceable: Bool
        /// What `subjects` are.
        var scope = ListScope.subject
        /// Those of the event, each behind a byte that is its length less one; or its installation.
        var subjects = UnsafeMutableBufferPointer<UInt8>(start: nil, count: 0)

        var bytes: Int { body.count + collapseID.count + subjects.count }
    }

    package init() {}

    deinit {
        for row in rows where row.users > 0 {
            row.body.deallocate()
            row.collapseID.deallocate()
            row.subjects.deallocate()
        }
    }

    /// Copies a body in; the caller is its first user.
    /// - Parameters:
    ///   - knownSince: the planner's count when it read another worker's record of the body.
    ///   - activity: what a Live Activity's payload does.
    ///   - origin: the event that brought the body.
    ///   - isReplaceable: whether another event may bring a payload of the same key.
    package mutating func insert(
        _ body: [UInt8], collapseID: [UInt8], readAt: WallTime, knownSince: UInt64 = 0,
        activity: ActivityChange? = nil, origin: RecordPosition?, isReplaceable: Bool = true
    ) -> BodyID {
        let row = Row(
            body: Self.copy(body), collapseID: Self.copy(collapseID), users: 1, readAt: readAt,
            knownSince: knownSince, activity: activity, origin: origin, isReplaceable: isReplaceable
        )
        count(body.count + collapseID.count, of: origin)
        if let id = free.popLast() {
            rows[Int(id)] = row
            return BodyID(rawValue: id)
        }
        rows.append(row)
        return BodyID(rawValue: UInt32(rows.count - 1))
    }

    package mutating func retain(_ id: BodyID) {
        guard id != .none else { return }
        precondition(
            rows[Int(id.rawValue)].users > 0, "a body is retained only while it has a user")
        rows[Int(id.rawValue)].users += 1
    }

    package mutating func release(_ id: BodyID) {
        if id != .none { releaseRow(id) }
    }

    private mutating func releaseRow(_ id: BodyID) {
        let index = Int(id.rawValue)
        precondition(rows[index].users > 0, "each use of a body is given back once")
        rows[index].users -= 1
        guard rows[index].users == 0 else { return }
        count(-rows[index].bytes, of: rows[index].origin)
        rows[index].body.deallocate()
        rows[index].collapseID.deallocate()
        rows[index].subjects.deallocate()
        free.append(id.rawValue)
    }

    private mutating func count(_ size: Int, of origin: RecordPosition?) {
        bytes += size
        guard let topic = origin.map({ Int($0.topic) }) else { return }
        while bytesByTopic.count <= topic { bytesByTopic.append(0) }
        bytesByTopic[topic] += size
    }

    package func body(_ id: BodyID) -> UnsafeBufferPointer<UInt8> {
        UnsafeBufferPointer(rows[Int(id.rawValue)].body)
    }

    package func collapseID(_ id: BodyID) -> UnsafeBufferPointer<UInt8> {
        UnsafeBufferPointer(rows[Int(id.rawValue)].collapseID)
    }

    package func readAt(_ id: BodyID) -> WallTime { rows[Int(id.rawValue)].readAt }

    package func origin(_ id: BodyID) -> RecordPosition? { rows[Int(id.rawValue)].origin }

    package func isReplaceable(_ id: BodyID) -> Bool { rows[Int(id.rawValue)].isReplaceable }

    // MARK: Whose payload it is

    /// The payload's event is about this subject, perhaps among others, or for this installation.
    /// - Parameter subject: 1 to 256 bytes.
    package mutating func add(
        _ scope: ListScope, _ subject: UnsafeRawBufferPointer, to id: BodyID
    ) {
        precondition(
            (1...256).contains(subject.count), "a subject has 1 to 256 bytes, not \(subject.count)")
        assert(
            rows[Int(id.rawValue)].subjects.isEmpty || rows[Int(id.rawValue)].scope == .subject,
            "an event names subjects, or one installation")
        let known = rows[Int(id.rawValue)].subjects
        let all = UnsafeMutableBufferPointer<UInt8>.allocate(
            capacity: known.count + 1 + subject.count)
        let start = all.initialize(fromContentsOf: known)
        all[start] = UInt8(subject.count - 1)
        UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(all)[(start + 1)...])
            .copyMemory(from: subject)
        known.deallocate()
        rows[Int(id.rawValue)].subjects = all
        rows[Int(id.rawValue)].scope = scope
        count(1 + subject.count, of: origin(id))
    }

    /// Says of a subject whether it is shown, or of an installation whether the token is its.
    package typealias Showing = (ListScope, UnsafeRawBufferPointer) -> Bool

    package func forEachSubject(
        of id: BodyID, _ body: (ListScope, UnsafeRawBufferPointer) -> Void
    ) {
        _ = firstSubject(of: id) { scope, subject in
            body(scope, subject)
            return false
        }
    }

    /// Whether `isShown` is true of one of the subjects of the payload's event, or of its installation;
    /// true where none is known, and without a payload.
    package func isOwed(_ id: BodyID, where isShown: Showing) -> Bool {
        id == .none || rows[Int(id.rawValue)].subjects.isEmpty
            || firstSubject(of: id, where: isShown) != nil
    }

    private func firstSubject(
        of id: BodyID, where isShown: Showing
    ) -> UnsafeRawBufferPointer? {
        let scope = rows[Int(id.rawValue)].scope
        let subjects = UnsafeRawBufferPointer(rows[Int(id.rawValue)].subjects)
        var place = 0
        while place < subjects.count {
            let end = place + 2 + Int(subjects[place])
            let subject = UnsafeRawBufferPointer(rebasing: subjects[(place + 1)..<end])
            if isShown(scope, subject) { return subject }
            place = end
        }
        return nil
    }

    /// A copy of the payload for a record; nil for "look again".
    /// - Parameter isShown: which subject to name of several; the first where it is true of none.
    package func payload(
        _ id: BodyID, where isShown: Showing = { _, _ in true }
    ) -> StoredPayload? {
        guard id != .none else { return nil }
        let collapseID = collapseID(id)
        let subject =
            firstSubject(of: id, where: isShown) ?? firstSubject(of: id) { _, _ in true }
        let isOfInstallation = rows[Int(id.rawValue)].scope == .installation
        return StoredPayload(
            body: Array(body(id)), activity: activity(id),
            collapseID: collapseID.isEmpty ? nil : String(decoding: collapseID, as: UTF8.self),
            readAt: readAt(id), origin: origin(id),
            subject: isOfInstallation ? [] : subject.map { Array($0) } ?? [],
            installation: isOfInstallation
                ? subject.map { String(decoding: $0, as: UTF8.self) } : nil)
    }

    package func activity(_ id: BodyID) -> ActivityChange? { rows[Int(id.rawValue)].activity }

    package func knownSince(_ id: BodyID) -> UInt64 { rows[Int(id.rawValue)].knownSince }

    /// - Parameter sequence: the planner's count when it read the event; 0 if another worker read
    ///   it.
    package func age(of id: BodyID, sequence: UInt64) -> BodyAge {
        guard id != .none else {
            return .here(WallTime(milliseconds: 0), sequence: sequence)
        }
        var age =
            sequence == 0
            ? BodyAge.elsewhere(readAt(id), knownSince: knownSince(id))
            : .here(readAt(id), sequence: sequence)
        age.timestamp = activity(id)?.timestamp ?? 0
        return age
    }

    package var count: Int { rows.count - free.count }

    package func checkInvariants() {
        let used = rows.filter { $0.users > 0 }
        precondition(used.count == count, "each body without a user is on the list of free ones")
        precondition(
            used.reduce(0) { $0 + $1.bytes } == bytes
                && used.reduce(0) { $0 + ($1.origin == nil ? 0 : $1.bytes) }
                    == bytesByTopic.reduce(0, +)
                && bytesByTopic.allSatisfy { $0 >= 0 },
            "the bytes counted, in all and by topic, are those of the bodies in use")
    }

    private static func copy(_ bytes: [UInt8]) -> UnsafeMutableBufferPointer<UInt8> {
        let copy = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: bytes.count)
        _ = copy.initialize(from: bytes)
        return copy
    }
}
