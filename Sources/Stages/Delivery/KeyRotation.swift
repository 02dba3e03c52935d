// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// Decides which of a credential's keys signs in one environment. Apple never reissues a key under
/// the same key ID, so a new key comes beside the old one. The new key is tried before it is used,
/// and the old one signs until APNs has accepted the new one.
///
/// Keys that were there at the start are equal: they are tried only when APNs refuses the one in
/// use, or when its file is gone. Facts go in, and `nextTrial` says which key to try.
package struct KeyRotation: Sendable {
    /// Stands for a key: for its identifier and its content.
    package typealias Key = Int

    package enum Result: Sendable {
        case accepted
        case refused
        /// APNs could not be asked.
        case unanswered
    }

    private struct Other {
        /// When the key is to be tried; nil for a spare, which is not tried while the one in use is
        /// good.
        var trialAt: MonotonicTime?
        var failures = 0
        /// How many looks in a row have not found the key's file.
        var looksMissed = 0
    }

    package private(set) var keyInUse: Key
    /// The other keys whose files are there.
    private var others: [Key: Other] = [:]
    /// How many looks in a row have not found the file of the key in use.
    private var looksMissed = 0

    /// The delays between trials of a key: Apple may take a while to know a new key, and each
    /// refusal counts.
    private static let backoff = Backoff(least: .seconds(10), most: .seconds(300))
    /// After this many looks a missing file is gone. Mounted secrets are replaced file by file or
    /// all at once, and one look may fall between.
    private static let looksMax = 2

    /// - Parameters:
    ///   - spares: keys that are as good as the one in use.
    ///   - candidates: keys that are newer than the one in use.
    package init(keyInUse: Key, spares: [Key] = [], candidates: [Key] = []) {
        self.keyInUse = keyInUse
        for key in spares { others[key] = Other() }
        for key in candidates {
            others[key] = Other(trialAt: MonotonicTime(nanoseconds: .min))
        }
    }

    /// Takes the keys whose files are there.
    /// - Returns: those that were not there before.
    package mutating func found(_ keys: Set<Key>, now: MonotonicTime) -> [Key] {
        for key in others.keys {
            others[key]!.looksMissed = keys.contains(key) ? 0 : others[key]!.looksMissed + 1
        }
        others = others.filter { $0.value.looksMissed < Self.looksMax }
        let new = keys.filter { $0 != keyInUse && others[$0] == nil }.sorted()
        for key in new { others[key] = Other(trialAt: now) }
        looksMissed = keys.contains(keyInUse) ? 0 : looksMissed + 1
        if isGone { trySpares(now: now) }
        return new
    }

    /// The key in use, and those that may follow it.
    package var keys: Set<Key> { Set(others.keys).union([keyInUse]) }

    /// Whether the file of the key in use is gone, so that the key is used only for want of
    /// another.
    package var isGone: Bool { looksMissed >= Self.looksMax }

    /// APNs refuses the key in use.
    package mutating func refusedInUse(now: MonotonicTime) { trySpares(now: now) }

    private mutating func trySpares(now: MonotonicTime) {
        for key in others.keys where others[key]!.trialAt == nil { others[key]!.trialAt = now }
    }

    /// The key to try now, if any.
    package func nextTrial(now: MonotonicTime) -> Key? {
        let due = others.filter {
            $0.value.looksMissed == 0 && $0.value.trialAt.map { $0 <= now } ?? false
        }
        return due.min { ($0.value.trialAt!, $0.key) < ($1.value.trialAt!, $1.key) }?.key
    }

    /// Takes the result of a trial.
    /// - Returns: when the key is tried again, unless it was accepted.
    package mutating func tried(
        _ key: Key, _ result: Result, now: MonotonicTime
    ) -> MonotonicTime? {
        guard let other = others[key] else { return nil }
        if result == .accepted {
            // The key used so far is kept as a spare for when this one fails.
            others[keyInUse] = isGone ? nil : Other(looksMissed: looksMissed)
            others[key] = nil
            keyInUse = key
            looksMissed = other.looksMissed
            return nil
        }
        let next = now + Self.backoff.ceiling(attempt: other.failures)
        others[key]!.trialAt = next
        others[key]!.failures += 1
        return next
    }
}
