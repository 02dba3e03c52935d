// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// Watches one pool's answers and reports when APNs is in trouble: when half of the last 50
/// answers, and those to half of their tokens, are 5xx; when there has been nothing but 5xx for 10 s,
/// five at least, of several tokens, since few pushes do not fill that window; or when nothing has
/// answered for 10 s while something should. Failed pushes to a single token are never enough, however
/// many they are.
package struct PoolHealth: Sendable {
    private struct Entry {
        let token: TokenID
        let isFault: Bool
    }

    /// The faults since the last answer that was none.
    private struct Run {
        let token: TokenID
        let began: MonotonicTime
        var hasSeveralTokens = false
        var faults = 0
    }

    private var run: Run?
    private var answers: [Entry] = []
    private var position = 0
    private var faults = 0
    /// Since when something has been in flight without any answer.
    private var silentSince: MonotonicTime?

    private static let window = 50
    private static let silenceMax = Duration.seconds(10)
    private static let runMax = Duration.seconds(10)
    private static let runFaultsMin = 5

    package init() {}

    package enum Answer: Sendable {
        /// Anything but the two below.
        case healthy
        /// A 5xx.
        case fault
        /// The request was sent and nothing came back.
        case silence
    }

    /// Something was answered that says nothing else of the pool.
    package mutating func heard() { silentSince = nil }

    /// - Returns: whether the pool's breaker should open.
    package mutating func received(
        _ answer: Answer, of token: TokenID, now: MonotonicTime
    ) -> Bool {
        if answer != .silence { silentSince = nil }
        let isFault = answer != .healthy
        // A full ring of healthy answers need not be updated.
        if !isFault, faults == 0, answers.count == Self.window { return false }
        if isFault { continueRun(with: token, now: now) } else { run = nil }
        let entry = Entry(token: token, isFault: isFault)
        if answers.count < Self.window {
            answers.append(entry)
        } else {
            if answers[position].isFault { faults -= 1 }
            answers[position] = entry
            position = (position + 1) % Self.window
        }
        if isFault { faults += 1 }
        let isHalf = answers.count == Self.window && faults * 2 >= Self.window
        let isRun = run?.hasSeveralTokens ?? false && isFailingAll(now: now)
        return (isHalf || isRun) && areManyFaulty
    }

    private mutating func continueRun(with token: TokenID, now: MonotonicTime) {
        if run == nil { run = Run(token: token, began: now) }
        run!.faults += 1
        if run!.token != token { run!.hasSeveralTokens = true }
    }

    /// Whether there has been nothing but faults for a while, be they of one token.
    package func isFailingAll(now: MonotonicTime) -> Bool {
        guard let run else { return false }
        return run.faults >= Self.runFaultsMin && now - run.began >= Self.runMax
    }

    /// How many faults there have been since the last answer that was none; 0 if that was the last.
    package var faultsInARow: Int { run?.faults ?? 0 }

    /// Whether several tokens had faults, and no fewer tokens than had none.
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

    /// Whether nothing has answered for too long. It must be called regularly, since it also notes
    /// when the silence begins.
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

    /// How long something has been in flight without any answer, as of the last call of `isSilent`;
    /// nil if nothing is in flight.
    package func silence(now: MonotonicTime) -> Duration? { silentSince.map { now - $0 } }

    /// Forgets what opened the breaker, so that later answers are judged afresh.
    package mutating func reset() {
        answers.removeAll(keepingCapacity: true)
        position = 0
        faults = 0
        silentSince = nil
        run = nil
    }
}
