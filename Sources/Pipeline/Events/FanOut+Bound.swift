// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Intake
internal import Ledger
package import PushModel
package import RecordFormats

/// An event that was withheld because it is for very many tokens.
package struct WithheldEvent: Sendable, Equatable {
    package var source: DeadLetter.Source
    package var tokens: Int
    package var at: WallTime
}

extension UnreadableRecord {
    /// Whether the record is sound, and waits for an operator.
    var isWithheld: Bool { code == UnreadableCode.fanOutTooLarge.rawValue }
}

/// An event of more tokens than `planning.fanOutMax` ends as a dead letter with the whole record.
/// When an operator has the letter redriven, the record comes again to the same partition with a
/// header that names where it stood, and is fanned out.
extension FanOut {
    /// Throws for an event that is to be withheld. A shard is not: its event has passed the bound.
    @inline(never)
    mutating func checkBound(
        _ event: Event, at position: RecordPosition, now: Now, header: EventRecord.HeaderLookup,
        _ state: borrowing PipelineState
    ) throws(UnreadableRecord) {
        guard event.shard == nil else { return }
        let most = state.settings.live.fanOutMax
        let tokens = tokens(askedBy: event, state)
        guard tokens > most || !withheld.isEmpty else { return }
        let source = state.source(position)
        // It is released whatever the bound is by now, and whatever counts.
        if let released = Self.released(by: header(DeadLetter.releasedHeader), to: source) {
            withheld.removeAll { $0.source == released }
            return
        }
        guard tokens > most else { return }
        // One that was read again may be named already.
        withheld.removeAll { $0.source == source }
        if withheld.count == Self.withheldMax { withheld.removeFirst() }
        withheld.append(WithheldEvent(source: source, tokens: tokens, at: now.wall))
        throw UnreadableRecord(
            .fanOutTooLarge,
            "the event is for \(tokens) tokens, more than planning.fanOutMax (\(most)): it is "
                + "withheld until lamplighter dead-letters redrive --event \(source.text)")
    }

    /// Another worker learns of the release of this partition's events.
    mutating func forgetWithheld(of partition: DeadLetter.Source) {
        withheld.removeAll {
            ($0.source.topic, $0.source.partition) == (partition.topic, partition.partition)
        }
    }

    /// More would be a flood, which the count of them tells as well.
    private static var withheldMax: Int { 8 }

    /// How many tokens are on the lists of the event, a token of several lists counted in each; those
    /// of subjects that an operator drops are not.
    private func tokens(askedBy event: Event, _ state: borrowing PipelineState) -> Int {
        var tokens = 0
        if event.subject.isEmpty {
            let names = event.isAppWide ? state.audience.kindNames(of: event.app) : event.kinds
            for name in names {
                tokens += state.audience.count(onList: EventList(kind: name, of: event, state))
            }
            return tokens
        }
        for event in [event] + event.furtherSubjects.map({ event.about($0) })
        where !dropped.isDropped(event) {
            tokens += state.audience.count(onList: EventList(subjectOf: event, state))
        }
        return tokens
    }

    /// The withheld record that this one is the release of. It must have stood before it in the
    /// same partition, so that a program which copies headers to other records lifts no bound with them.
    private static func released(
        by header: UnsafeRawBufferPointer?, to source: DeadLetter.Source
    ) -> DeadLetter.Source? {
        guard let header, let text = String(validating: header, as: UTF8.self),
            let withheld = DeadLetter.Source(text: text),
            withheld.topic == source.topic, withheld.partition == source.partition,
            withheld.offset < source.offset
        else { return nil }
        return withheld
    }
}
