// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import LinuxIO
internal import PushModel

extension TrafficGenerator {
    /// About any subject but the drawn door.
    func nextEvent() -> EmittedEvent {
        let number = Int.random(in: 0..<neighbourhood.subjectCount - 1, using: &random)
        var event = EmittedEvent(
            t: SystemClock.wallNanoseconds(),
            subject: number >= Neighbourhood.drawnDoor ? number + 1 : number)
        // Not drawn where it cannot matter: a seed's traffic stays what it was.
        guard options.unreadableShare + options.shortLivedShare > 0 else { return event }
        let share = Double.random(in: 0..<1, using: &random)
        if share < options.unreadableShare {
            event.sort = .unreadable
        } else if share < options.unreadableShare + options.shortLivedShare {
            event.sort = .shortLived(until: (.now + TrafficOptions.shortLife).milliseconds)
        }
        return event
    }

    /// One installation's tokens go, come, or change places with another's.
    func changeRegistrations() throws {
        for change in population.change(using: &random) {
            if let tokenSet = change.tokenSet {
                let drafts = neighbourhood.registrations(
                    of: change.installation, tokenSet: tokenSet, at: .now)
                for draft in drafts { try write(draft) }
            } else {
                let drafts = neighbourhood.registrations(of: change.installation, at: .now)
                for draft in drafts { try remove(draft) }
            }
        }
    }
}
