// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Ledger
internal import Planning
internal import PushModel

/// One of the bounds on the events that are read, and who has taken it.
package struct EventBound: Sendable {
    /// By topic, how much of it its events have taken, in a unit of the bound's own; nil where no
    /// partition is ours.
    package var taken: [Int?]
    /// How much of it is taken in all, be it by events of topics that are not ours any more.
    package var total: Int
    /// Whether hardly another event fits.
    package var isShort: Bool
    /// Whether half of it is free.
    package var isHalfFree: Bool

    package init(taken: [Int?], total: Int, isShort: Bool, isHalfFree: Bool) {
        assert(!isShort || !isHalfFree, "a bound that is short is not half free")
        self.taken = taken
        self.total = total
        self.isShort = isShort
        self.isHalfFree = isHalfFree
    }
}

/// Room for events: what bounds how many are read, and which topics have taken it.
extension PushPipeline {
    /// Whether another event may be read: there is room for all that it could need.
    package var hasRoomForEvents: Bool {
        state.freeEventSlots > state.settings.sizes.immediateFanOutMax && !fanOut.underWay.isFull
            && late.isEmpty && state.roomForLetters() > 0
            && state.pushes.bodies.bytes < state.settings.sizes.payloadBytesMax
            && late.bytes < state.settings.sizes.recentEventBytesMax
    }

    /// How many events may be read in one go. They are few enough to be fanned out at once even if
    /// each has `immediateFanOutMax` tokens, since a fan-out costs more, and they take half of the
    /// free slots, so that fan-outs can have as many.
    package var roomForEvents: Int {
        guard hasRoomForEvents else { return 0 }
        return min(
            max(1, state.freeEventSlots / (2 * state.settings.sizes.immediateFanOutMax)),
            state.settings.sizes.fanOutsMax - fanOut.underWay.count,
            max(1, state.roomForLetters()))
    }

    /// Whether hardly another event fits, by any of the bounds of `hasRoomForEvents`.
    package var isShortOfRoom: Bool {
        slots.isShort || fanOuts.isShort || letters.isShort || payloads.isShort
            || recentEvents.isShort
    }

    /// Whether half of the room is free, as far as it becomes free with time. Letters and payloads
    /// may stay, such as while Kafka takes none of them, and reading must not wait for that.
    package var isHalfFree: Bool {
        slots.isHalfFree && fanOuts.isHalfFree && recentEvents.isHalfFree
    }

    /// The bounds of `hasRoomForEvents`.
    /// - Parameter underWay: by topic, the events that have not ended; nil where no partition is
    ///   ours. They stand for the slots and the letters that a topic has taken.
    package func eventBounds(underWay: [Int?]) -> [EventBound] {
        let events = underWay.map { $0 ?? 0 }
        let bounds = [
            (slots, events), (letters, events), (fanOuts, fanOutClaims(topics: underWay.count)),
            (payloads, state.pushes.bodies.bytesByTopic), (recentEvents, late.bytesByTopic),
        ]
        return bounds.map { level, taken in
            let ofOurs = underWay.enumerated().map { topic, events in
                events.map { _ in topic < taken.count ? taken[topic] : 0 }
            }
            return EventBound(
                taken: ofOurs, total: taken.reduce(0, +), isShort: level.isShort,
                isHalfFree: level.isHalfFree)
        }
    }

    /// By topic, the claims of its events that fan-outs have.
    private func fanOutClaims(topics: Int) -> [Int] {
        var claims = Array(repeating: 0, count: topics)
        fanOut.underWay.forEachClaim { claim in
            guard let topic = state.tracker.position(of: claim)?.topic else { return }
            claims[Int(topic)] += 1
        }
        return claims
    }

    // MARK: How much is taken

    private struct Level {
        var isShort: Bool
        var isHalfFree: Bool

        init(isShort: Bool, isHalfFree: Bool) {
            self.isShort = isShort
            self.isHalfFree = isHalfFree && !isShort
        }

        /// Short with an eighth left: a poll may bring some more, and the topics that have taken
        /// nothing are still read.
        init(_ taken: Int, of most: Int) {
            self.init(isShort: taken >= most - most / 8, isHalfFree: taken <= most / 2)
        }
    }

    /// With half of the slots free an event fits, however few they are. Less urgent pushes have
    /// made room before, as far as they could (`makeRoomForUrgent`). What is owed to new tokens
    /// waits for slots as well, and events wait for that.
    private var slots: Level {
        let settings = state.settings
        let few = max(settings.sizes.slotsKeptForEvents / 4, 2 * settings.sizes.immediateFanOutMax)
        return Level(
            isShort: state.freeEventSlots <= min(few, state.pushes.slots / 2 - 1) || !late.isEmpty,
            isHalfFree: state.pushes.freeSlots >= state.pushes.slots / 2)
    }

    private var fanOuts: Level { Level(fanOut.underWay.count, of: state.settings.sizes.fanOutsMax) }

    /// Short when not one fits, and no earlier: only then does it show whether Kafka takes letters,
    /// and reading waits for them only while it does.
    private var letters: Level {
        let room = state.roomForLetters()
        return Level(
            isShort: room == 0,
            isHalfFree: room == .max
                || state.outbox.letterBytes <= state.settings.sizes.wholeLetterBytesMax / 2
        )
    }

    private var payloads: Level {
        Level(state.pushes.bodies.bytes, of: state.settings.sizes.payloadBytesMax)
    }

    private var recentEvents: Level {
        Level(late.bytes, of: state.settings.sizes.recentEventBytesMax)
    }
}
