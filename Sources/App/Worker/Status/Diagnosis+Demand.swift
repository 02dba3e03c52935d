// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Pipeline
internal import PushModel

extension WaitingEvent {
    /// What the event is about, as text that completes "the push is …".
    var words: String {
        let subject = String(decoding: subject, as: UTF8.self).printable
        return "of \(topic.printable)"
            + (subject.isEmpty ? "" : ", about \(subject) of \(app.printable)")
    }
}

extension PushDemand {
    /// A subject that asks for so much of all is named where there is too much.
    private static let notableShare = 0.5

    /// Who asks for at least half of all pushes, as text that a sentence may end with; nil if nobody
    /// does.
    var words: String? {
        guard let first = subjects.first,
            Double(first.pushes) >= Double(pushes) * Self.notableShare
        else { return nil }
        let share = min(100, first.pushes * 100 / max(1, pushes))
        return "; \(first.name) of \(first.app.printable) asks for \(share) % of all pushes, "
            + "\(first.audience.withCommas) for each event"
    }
}

extension PushDemand.Subject {
    var name: String {
        let text = String(decoding: subject, as: UTF8.self).printable
        return isKind ? "the kind \(text)" : text
    }
}
