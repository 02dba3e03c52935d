// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Pipeline
internal import PushModel

/// What is known of the operator's canaries.
struct CanaryStatus: Sendable {
    var topic: String
    var app: String
    var subject: String
    var every: Duration
    /// How long ago the newest was written that has come through to APNs, or since when one is expected
    /// of this worker; nil while the group has given it no partition of the topic.
    var silence: Duration?
    var latest: Canary.Turn?
    /// The newest that has come through.
    var lastProof: Canary.Turn?
    var counts = Canary.Counts()

    /// Whether two in succession have not come through within a period.
    var isMissing: Bool { silence.map { $0 > every * Canary.patience } ?? false }

    /// How long the newest that has come through took.
    var latency: Duration? {
        guard case .cameThrough(_, let after) = lastProof?.stage else { return nil }
        return after
    }
}

extension Canary.Turn {
    /// What has become of it.
    var words: String {
        switch stage {
        case .unacknowledged: "Kafka has not acknowledged it"
        case .refused(let cause): "Kafka has not taken it (\(cause))"
        case .unread: "it was not read yet"
        case .ended(.unmatched): "nobody is registered for its subject"
        case .ended(let outcome): "it was read, and ended as \(outcome)"
        case .withoutPush:
            "it was read, and no push was made: its token is suppressed, or waits for its minimum gap"
        case .sent(nil): "it was read, and its push waits to be sent"
        case .sent(let last?): "APNs has not taken its push: \(last)"
        case .unsent(.expired): "its push has expired before it could be sent"
        case .unsent(.suppressed): "its push was not sent, since APNs has called its token dead"
        case .unsent(.superseded): "its push was not sent, since a newer one has replaced it"
        case .unsent(.dropped): "an operator has its push dropped"
        case .cameThrough(let status, let after):
            "APNs answered \(status) after \(Int((after / .milliseconds(1)).rounded())) ms"
        }
    }

    fileprivate func remedy(_ status: CanaryStatus) -> String {
        switch stage {
        case .ended(.unmatched), .withoutPush:
            "register one token without a minimum gap for the subject \(status.subject) of \(status.app), such as a "
                + "development device's: docs/operations.md has the command"
        case .ended:
            "compare canary.app and canary.subject with the topic's binding and with what operators "
                + "have dropped (lamplighter restrictions)"
        case .unsent(.dropped):
            "see what is dropped with lamplighter restrictions; lamplighter resume ends it"
        case .unsent(.suppressed):
            "register another token for the subject \(status.subject) of \(status.app)"
        case .sent(let last?) where last.hasPrefix("400 "):
            "APNs refuses its token or its topic: register a token of this app and environment for the "
                + "subject \(status.subject) of \(status.app)"
        default:
            "see what else is reported here; if it is nothing, lamplighter explain --subject "
                + "\(status.subject.shellWord) shows what became of its token"
        }
    }
}

extension Diagnosis {
    mutating func checkCanary() {
        guard let canary = status.canary, canary.isMissing else { return }
        let summary =
            "no canary has come through to APNs for \((canary.silence ?? .zero).rounded), and one is "
            + "due every \(canary.every.rounded): "
        guard let latest = canary.latest else {
            return report(
                .error,
                summary
                    + "none could be written, since the group has not said which partitions are "
                    + "this worker's",
                "see what else is reported here; look for the group's members and their brokers")
        }
        let age = max(.zero, status.at - latest.writtenAt)
        report(
            .error,
            summary + "of the latest, written \(age.rounded) ago to "
                + "\(canary.topic)/\(latest.partition), \(latest.words.printable)",
            latest.remedy(canary))
    }
}
