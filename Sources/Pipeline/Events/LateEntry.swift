// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Ledger
internal import PushModel

/// An entry of a subject's list, new or moved by a registration, that is owed pushes for which
/// there was no free slot: those of fan-outs that had passed its place, and those of events that were
/// read just before its registration. `LateRegistrations` makes and keeps it.
///
/// Fan-outs and events are named by ranges of numbers, so its size does not grow with them: while it
/// waits, fan-outs do not end and recent events are not forgotten. No registration is read meanwhile,
/// so there are no more of these than one registration changes.
struct LateEntry {
    let entry: AudienceEntry
    let subject: SubjectID
    let hash: UInt64
    /// Events that have expired since then were still owed.
    let madeAt: MonotonicTime
    /// The numbers of the fan-outs that may owe it a push.
    var fanOuts: Range<Int>
    /// The numbers of the recent events that may owe it a push.
    var events: Range<Int>
    /// When the plain event that is owed expires; nil if none is.
    var changeExpiresAt: MonotonicTime?
    /// Whether it was in the list before, at another position, and fan-outs are where they were then.
    var hasOnlyMoved = false
    /// Claims on the offsets of the recent events, whose grace period may end meanwhile.
    var claims: [OffsetClaim] = []
}
