// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import LinuxIO
internal import PushModel

extension TrafficGenerator {
    /// The next event, about a random subject other than the drawn door.
    func nextEvent() -> EmittedEvent {
        let number = Int.random(in: 0..<neighbourhood.subjectCount - 1, using: &random)
        var event = EmittedEvent(
            t: SystemClock.wallNanoseconds(),
            subject: number >= Neighbourhood.drawnDoor ? number + 1 : number)
        // The random number is not drawn if it has no effect, so that a seed's traffic does not
        // change.
        let (unreadable, shortLived) = (options.unreadableShare, options.shortLivedShare)
        guard unreadable + shortLived + options.streetShare > 0 else { return event }
        let share = Double.random(in: 0..<1, using: &random)
        if share < unreadable {
            event.sort = .unreadable
        } else if share < unreadable + shortLived {
            event.sort = .shortLived(until: (.now + TrafficOptions.shortLife).milliseconds)
        } else if share < unreadable + shortLived + options.streetShare {
            event.subject = neighbourhood.street
        }
        return event
    }

    /// Writes the next change of registrations: an installation's tokens are removed, added, or
    /// swapped with another's.
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
