// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Intake
internal import Ledger
internal import Planning
package import PushModel
internal import RecordFormats

extension PushPipeline {
    /// A record of the registrations topic was read.
    /// - Returns: why it was skipped, if it was.
    package mutating func registrationRecord(
        key: UnsafeRawBufferPointer?, value: UnsafeRawBufferPointer?, timestamp: WallTime, now: Now
    ) -> UnreadableRecord? {
        do throws(UnreadableRecord) {
            switch try registrations.decode(
                key: key, value: value, timestamp: timestamp, into: &registration)
            {
            case .replaced: count(audience.apply(registration))
            case .removed: registration.key.withUnsafeBytes { _ = audience.remove(key: $0) }
            }
        } catch {
            counters.registrationsUnreadable += 1
            return error
        }
        counters.registrationsRead += 1
        if !audience.changes.isEmpty { registrationApplied(now: now) }
        // Walks and late requests name kinds by number; what is remembered of events, by name.
        if audience.hasUnusedKinds, fanOuts.isEmpty, lateEntries.isEmpty {
            audience.reclaimKinds()
        }
        return nil
    }

    private mutating func count(_ setAside: SetAside) {
        counters.registrationRowsSetAside += setAside.unroutable + setAside.outOfBounds
        counters.registrationRowsWithoutKind += setAside.withoutKind
    }

    /// Apps that have used up their kinds, by name, and how many rows were taken without since the
    /// start.
    package var appsOutOfKinds: [(app: String, rows: Int)] {
        audience.appsOutOfKinds.map { (routing.name(of: $0.app), $0.refused) }
    }

    /// A record of the verdicts topic was read.
    /// - Returns: why it was skipped, if it was.
    package mutating func verdictRecord(
        key: UnsafeRawBufferPointer?, value: UnsafeRawBufferPointer?
    ) -> UnreadableRecord? {
        do throws(UnreadableRecord) {
            let verdict = try verdicts.verdict(key: key, value: value, into: &tokenKey)
            tokenKey.token.withUnsafeBytes { token in
                if let verdict {
                    _ = audience.apply(verdict: verdict, lane: tokenKey.lane, token: token)
                } else {
                    _ = audience.revokeVerdict(lane: tokenKey.lane, token: token)
                }
            }
        } catch {
            counters.verdictsUnreadable += 1
            return error
        }
        counters.verdictsRead += 1
        return nil
    }

    /// Follows up what the audience reports of a change.
    private mutating func registrationApplied(now: Now) {
        for index in audience.changes.moved.indices {
            meetMovedEntry(audience.changes.moved[index], now: now)
        }
        // A walk may have passed the end of its list, where new entries go. Their token may have
        // stood further down until now, under another registration.
        if !fanOuts.isEmpty {
            for index in audience.changes.subscribed.indices {
                meetMovedEntry(audience.changes.subscribed[index], now: now)
            }
        }
        for index in audience.changes.removedTokens.indices {
            tokenRemoved(audience.changes.removedTokens[index])
        }
        // Nothing is owed before the first event is read: a replay need not ask.
        if counters.events > 0 {
            for index in audience.changes.subscribed.indices {
                requestIfRecent(audience.changes.subscribed[index], now: now)
            }
        }
        audience.changes.clear()
        audience.reclaimRemoved()
        giveBack()
    }

    /// Nobody shows anything under this token any more: what waits for it ends.
    private mutating func tokenRemoved(_ token: TokenID) {
        var slots = payloadPushes.removeAll(of: token.rawValue)
        let cell = audience.pending(token)
        if cell != 0 { slots.append(cell - 1) }
        for slot in slots {
            // What trails a push in flight ends here, the push itself with its outcome.
            let isTrailing = pushes[slot].isDirty
            let hasEnded = pushes.orphan(slot) { ledger.release($0) }
            counters.unregistered += (hasEnded ? 1 : 0) + (isTrailing ? 1 : 0)
        }
        dropLateEntries(of: token)
    }
}
