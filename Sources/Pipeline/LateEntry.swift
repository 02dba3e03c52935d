// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Ledger
internal import PushModel

/// An entry of a subject's list to which pushes are owed that found no free slot: those of walks that
/// have passed its place, and those of events that were read just before its registration. It says
/// which, by number, and not each by itself: walks do not end and recent events are not forgotten
/// while it waits. So its size does not grow with their number, and since no registration is read
/// meanwhile there are no more of these than one registration changes.
struct LateEntry {
    let entry: AudienceEntry
    let subject: SubjectID
    let hash: UInt64
    /// What has expired since was owed.
    let madeAt: MonotonicTime
    /// Of walks, by number.
    var walks: Range<Int>
    /// Of recent events, by number.
    var events: Range<Int>
    /// A plain event that is owed, until then.
    var changeExpiresAt: MonotonicTime?
    /// Offsets of the recent events. Their grace period may have ended meanwhile.
    var holds: [Hold] = []
}
