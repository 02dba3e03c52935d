// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// Watches one pool's answers and parks it when the far side is ill: when half of the last 50
/// answers, and those to half of their tokens, are 5xx, or when nothing has answered for 10 s while
/// something should. However many pushes to one token fail, it alone parks nothing.
package struct PoolHealth: Sendable {
    private struct Entry {
        let token: TokenID
        let isFault: Bool
    }

    private var answers: [Entry] = []
    private var position = 0
    private var faults = 0
    /// Since when something has been in flight without any answer.
    private var silentSince: MonotonicTime?

    private static let window = 50
    private static let silenceMax = Duration.seconds(10)

    package init() {}

    package enum Answer: Sendable {
        /// Anything but the two below.
        case healthy
        /// A 5xx.
        case fault
        /// The request was sent and nothing came back.
        case silence
    }

    /// - Returns: the pool should be parked.
    package mutating func received(_ answer: Answer, of token: TokenID) -> Bool {
        if answer != .silence { silentSince = nil }
        let isFault = answer != .healthy
        // A full ring of healthy answers stays what it is, wherever it begins.
        if !isFault, faults == 0, answers.count == Self.window { return false }
        let entry = Entry(token: token, isFault: isFault)
        if answers.count < Self.window {
            answers.append(entry)
        } else {
            if answers[position].isFault { faults -= 1 }
            answers[position] = entry
            position = (position + 1) % Self.window
        }
        if isFault { faults += 1 }
        return answers.count == Self.window && faults * 2 >= Self.window && areManyFaulty
    }

    /// Whether the faults are those of several tokens, and of no fewer than have had none.
    private var areManyFaulty: Bool {
        var faulty: Set<TokenID> = []
        for entry in answers where entry.isFault { faulty.insert(entry.token) }
        guard faulty.count > 1 else { return false }
        var healthy: Set<TokenID> = []
        for entry in answers where !entry.isFault && !faulty.contains(entry.token) {
            healthy.insert(entry.token)
        }
        return faulty.count >= healthy.count
    }

    /// Called now and then. True: nothing has answered for too long.
    package mutating func isSilent(inFlight: Int, now: MonotonicTime) -> Bool {
        if inFlight == 0 {
            silentSince = nil
            return false
        }
        guard let since = silentSince else {
            silentSince = now
            return false
        }
        return now - since >= Self.silenceMax
    }

    /// Forgets what led to parking, so that the answers after it are judged afresh.
    package mutating func reset() {
        answers.removeAll(keepingCapacity: true)
        position = 0
        faults = 0
        silentSince = nil
    }
}
