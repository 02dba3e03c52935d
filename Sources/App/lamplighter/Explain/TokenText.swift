// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Delivery
import PushModel
import Worker

/// What is known of one token, in plain sentences, each with what to do.
struct TokenText {
    private let token: ExplainedTokens.Token

    init(_ token: ExplainedTokens.Token) { self.token = token }

    private var first: TokenReply.Token { token.first }

    /// The paragraph: a line that names the token, and indented sentences.
    var lines: [String] {
        [heading] + sentences.map { "  \($0)" }
    }

    private var heading: String {
        var parts = ["\(first.class) of \(first.app), \(first.environment)"]
        let kinds = Set(first.shows.compactMap(\.kind)).sorted()
        let subjects = Set(first.shows.compactMap(\.subject)).sorted()
        if !kinds.isEmpty {
            parts.append("\(kinds.count == 1 ? "kind" : "kinds") \(kinds.listed())")
        }
        if !subjects.isEmpty { parts.append("shows \(subjects.listed())") }
        let names = first.registrations.map {
            "installation \($0.installation), handler \($0.handler)"
        }
        let owner = names.isEmpty ? "" : " of \(names.listed())"
        return "Token \(first.tokenID) (\(parts.joined(separator: "; ")))\(owner):"
    }

    private var isDropped: Bool {
        (first.restrictions ?? []).contains { $0.action == "drop" }
    }

    private var hearsChanges: Bool { first.shows.contains(where: \.hearsChanges) }

    private var sentences: [String] {
        var sentences = indexSentences
        for (worker, token) in token.byWorker {
            let own = Self.ownSentences(token)
            let prefix = self.token.byWorker.count > 1 ? "On \(worker): " : ""
            sentences += own.map { prefix + $0 }
        }
        guard first.state == .idle else { return sentences }
        let latest = token.byWorker.flatMap(\.token.outcomes).max { $0.time < $1.time }
        if latest?.status == 200 {
            sentences.append(
                first.class == TokenClass.channel.name
                    ? "APNs has taken the latest broadcast. Whom it reaches, and when, is up to Apple: "
                        + "those whose Live Activity has subscribed to the channel."
                    : "APNs has taken the latest push. Whether and when the phone acts on it is up to "
                        + "Apple and the app.")
        } else if sentences.count == indexSentences.count, !isDropped {
            sentences.append(
                "Nothing waits, and no recent push to it is remembered: no event has asked for one "
                    + "lately. Try an event of its subject with lamplighter explain --event.")
        }
        return sentences
    }

    // MARK: What every worker knows

    private var indexSentences: [String] {
        var sentences: [String] = []
        if !first.registered {
            sentences.append(
                "No registration has it. It gets no push until the app registers it.")
        }
        if let suppression = first.suppression {
            sentences.append(sentence(suppression))
        }
        if first.registered, !first.shows.isEmpty, let reach { sentences.append(reach) }
        return sentences + (first.restrictions ?? []).map(\.sentence)
    }

    /// Which events lead to a push, where not every one does; nil for those of controls and widgets,
    /// and for tokens that hear of changes.
    private var reach: String? {
        // The classes of apns.pushTypes are the worker's, and not this program's.
        guard let tokenClass = TokenClass(name: first.class) else {
            return hearsChanges
                ? nil : "Events with a payload of the class's push type reach it, and no others."
        }
        switch tokenClass {
        case .liveActivity:
            return hearsChanges
                ? "It is a push-to-start token: events with the start of a Live Activity reach it, and "
                    + "no others."
                : "It is of a Live Activity that runs: events with an update or the end of one reach "
                    + "it, and no others."
        case .channel:
            return
                "It is a broadcast channel: events with an update or the end of a Live Activity are "
                + "broadcast once to all that follow it, and no others."
        case _ where hearsChanges: return nil
        case .device:
            return "An event without a payload sends it nothing: its registration does not say "
                + "onChange: background. An event with a payload reaches it."
        case .location:
            return "An event without a payload sends it nothing: its registration does not say "
                + "onChange: location. One with pushType: location reaches it."
        default:
            let type = tokenClass.payloadType(interrupts: false)
            return type.row.carriesPayload
                ? "Events with a payload of pushType: \(type.name) reach it, and no others."
                : nil
        }
    }

    private func sentence(_ suppression: TokenReply.Suppression) -> String {
        let since = suppression.since.map { "since \($0.minuteInUTC) " } ?? ""
        let answer = Self.answer(suppression.status, suppression.reason)
        guard suppression.holds else {
            return "It was suppressed \(since)because APNs answered \(answer), and has been "
                + "registered again: it gets pushes."
        }
        var text = "Suppressed \(since)because APNs answered \(answer)."
        if first.class == TokenClass.channel.name {
            text +=
                " A channel belongs to one app in one environment, and may have been deleted: see "
                + "lamplighter channels list."
        } else if suppression.status == 400 {
            text +=
                " Check that the app registers its tokens under the right app and environment: a "
                + "build from Xcode is development, one from TestFlight or the App Store production."
        }
        return text
            + (first.registered ? " It gets pushes again when the app registers it anew." : "")
    }

    // MARK: What one worker knows

    private static func ownSentences(_ token: TokenReply.Token) -> [String] {
        var sentences = token.pushes.map { sentence($0) }
        if !token.pushes.isEmpty || token.state == .idle {
            for breaker in token.breakers {
                let probe = breaker.nextProbeSeconds.map { "; the next probe is in \($0) s" } ?? ""
                sentences.append(
                    "Pushes wait for the circuit breaker of \(breaker.name): \(breaker.cause)"
                        + "\(probe).")
            }
        }
        if let time = token.heldUntil {
            sentences.append(
                "APNs has failed for this token again and again while it took pushes to others: "
                    + "its pushes wait until \(time.secondInUTC), then one is tried.")
        }
        if let sent = token.sentToday {
            sentences.append(
                "Sent \(sent.pushes.counted("push", plural: "pushes")) today (UTC); its budget is "
                    + "\(sent.budget).")
        }
        return sentences + token.outcomes.map { sentence($0) }
    }

    private static func sentence(_ push: TokenReply.Push) -> String {
        let tries =
            push.failedTries == 0
            ? "" : " after \(push.failedTries) failed \(push.failedTries == 1 ? "try" : "tries")"
        let until = push.until.map { " until \($0.secondInUTC)" } ?? ""
        let name = "A \(push.type) push"
        let text =
            switch push.state {
            case .queued: "\(name) stands in the queue\(tries)"
            case .inFlight: "\(name) is on its way to APNs\(tries)"
            case .resting: "\(name) waits\(until)\(tries)"
            case .deferred: "\(name) waits in the deferred topic\(until)\(tries)"
            case .idle, .suppressed, .unregistered: name
            }
        return text + (push.hasFollowUp ? ", and is sent once more for a later event" : "")
            + "; it expires at \(push.expiresAt.secondInUTC)."
    }

    private static func sentence(_ outcome: TokenReply.Outcome) -> String {
        var text = "\(outcome.time.secondInUTC): "
        let push = outcome.type.map { "a \($0) push" } ?? "a push"
        switch outcome.outcome {
        case "answered":
            let status = UInt16(clamping: outcome.status ?? 0)
            let reason = APNSReason(outcome.reason ?? "")
            if status == 200 {
                text += "APNs accepted \(push)"
            } else {
                let answer = PushOutcome(
                    slot: 0, kind: .answered, status: status, reason: reason)
                text +=
                    "APNs answered \(self.answer(Int(status), outcome.reason ?? "")) to "
                    + "\(push): \(APNSAdvice.text(answer))"
            }
        case "unprocessed": text += "\(push) was not processed, and is sent again"
        case "dropped":
            text += "\(push) was dropped: "
            text += outcome.restriction?.clause ?? "an operator wanted it"
        case "unsubscribed":
            text +=
                "\(push) was not sent, since the token had ceased to show the subject of its payload"
        case "unknown": text += "\(push) got no answer, and is sent again"
        default: text += "\(push) expired before it was sent"
        }
        if let topic = outcome.topic {
            text += " (for \(topic)/\(outcome.partition ?? 0)@\(outcome.offset ?? 0)"
            text += ", apns-id \(outcome.apnsID))"
        } else {
            text += " (apns-id \(outcome.apnsID))"
        }
        return text + "."
    }

    private static func answer(_ status: Int, _ reason: String) -> String {
        reason.isEmpty ? "\(status)" : "\(status) \(reason)"
    }
}
