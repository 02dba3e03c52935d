// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Pipeline
internal import PushModel

extension PipelineLoad {
    /// What the oldest event is about of which a push waits, as text that completes "the push is …"; nil
    /// if that is not known.
    var oldestWords: String? {
        oldestWaitingTopic.map { topic in
            let app = (oldestWaitingApp ?? "").printable
            return "of \(topic.printable)"
                + (oldestWaitingSubject.map { ", about \($0.printable) of \(app)" } ?? "")
        }
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
        return "; \(first.words) of \(first.app.printable) asks for \(share) % of all pushes, "
            + "\(first.audience.withCommas) for each event"
    }
}

extension PushDemand.Subject {
    fileprivate var words: String {
        unit == "kind" ? "the kind \(name.printable)" : name.printable
    }
}
