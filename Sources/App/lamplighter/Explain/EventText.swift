// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Pipeline
import PushModel
import Worker

/// Writes what `lamplighter explain --event` prints.
enum EventText {
    static func lines(_ reply: EventReply) -> [String] {
        let restrictions = (reply.restrictions ?? []).map(\.sentence)
        if let problem = reply.unreadable {
            let isDropped = reply.restrictions?.contains { $0.action == "drop" } ?? false
            return [
                "A record of \(reply.topic) like this cannot be read (\(problem.code)): "
                    + problem.message.withFullStop
                    + (isDropped ? "" : " It would become a dead letter and reach nobody.")
            ] + restrictions
        }
        if reply.filtered == true {
            let why =
                reply.filteredBecause
                ?? "a condition of when does not hold, its operation is not asked for, or a field is "
                + "missing"
            return [
                "The binding of \(reply.topic) leaves this record out, so it reaches nobody: "
                    + why.withFullStop
            ] + restrictions
        }
        guard let event = reply.event else { return [] }
        var lines: [String] = []
        if reply.phase == "\(WorkerControl.Phase.replaying)" {
            lines.append("The worker still reads registrations, so tokens may be missing.")
        }
        lines.append(meaning(event, topic: reply.topic))
        lines.append(summary(reply, event))
        lines += restrictions
        for app in reply.otherApps {
            lines.append(
                "\(app.entries) of \(app.app) show the subject too, but the event is for "
                    + "\(event.app): say app in the event, or in the topic's binding.")
        }
        for breaker in reply.breakers {
            lines.append(
                "Its pushes would wait for the circuit breaker of \(breaker.name): "
                    + "\(breaker.cause).")
        }
        for result in reply.results { lines += [""] + section(result, reply, event) }
        return lines
    }

    private static func meaning(_ event: EventReply.Event, topic: String) -> String {
        let what =
            event.subject.map { "subject \($0) of \(event.app) has changed" }
            ?? event.installation.map { "installation \($0) of \(event.app) is told" }
            ?? "every control of \(event.kinds.listed()) of \(event.app) is reloaded"
        var parts: [String] = []
        if let environment = event.environment { parts.append("in \(environment) alone") }
        if event.subject != nil || event.installation != nil, !event.kinds.isEmpty {
            parts.append("for kinds \(event.kinds.listed())")
        }
        if let classes = event.classes { parts.append("for classes \(classes.listed())") }
        if let payload = event.payload { parts.append("with a payload (push type \(payload))") }
        if event.delaySeconds > 0 { parts.append("sent \(event.delaySeconds) s later") }
        let conditions = parts.isEmpty ? "" : ", \(parts.joined(separator: ", "))"
        return "As a record of \(topic) it says that \(what)\(conditions)."
    }

    private static func summary(_ reply: EventReply, _ event: EventReply.Event) -> String {
        let all = reply.results.reduce(0) { $0.adding($1.entries) }
        let reached = reply.results.reduce(0) { $1.result == "push" ? $0.adding($1.entries) : $0 }
        if all == 0, event.installation != nil {
            return
                "It has no token (outcome unmatched): no registration of \(event.app) has this "
                + "installation in its key."
        }
        let shown = event.installation == nil ? "show it" : "are the installation's"
        if all == 0 {
            return
                "Nobody shows it (outcome unmatched): no registration of \(event.app) names the "
                + "subject. Names are case-sensitive: compare with what the app registers."
        }
        if event.expired {
            return "It expired at \(event.expiresAt.secondInUTC), so it reaches nobody; "
                + "\(all) \(shown)."
        }
        // A token that is suppressed or another sender's, or whose pushes are dropped, is one that the
        // event is for.
        if reached == 0, reply.unseen == 0,
            !reply.results.contains(where: {
                ["suppressed", "dropped", "otherSender"].contains($0.result)
            })
        {
            return "It would be passed over (outcome passedOver): \(all) \(shown), but no token of "
                + "its classes, kinds, environment or push type."
        }
        return "It would reach \(reached) of \(all) that \(shown)"
            + (reply.unseen == 0 ? "" : "; \(reply.unseen) more were not looked at") + "."
    }

    private static func section(
        _ result: EventReply.Result, _ reply: EventReply, _ event: EventReply.Event
    ) -> [String] {
        let named = reply.entries.filter {
            $0.result == result.result && $0.pushType == result.pushType
        }
        let heading =
            result.pushType.map { "A \($0) push to \(result.entries):" }
            ?? "No push to \(result.entries): \(cause(result.result, event))"
        let more = result.entries.adding(-named.count)
        return [heading]
            + named.map { entry in
                let kind = entry.kind.map { ", kind \($0)" } ?? ""
                return "  token \(entry.tokenID) (\(entry.class), \(entry.environment)\(kind))"
            } + (more > 0 ? ["  and \(more) more"] : [])
    }

    private static func cause(_ name: String, _ event: EventReply.Event) -> String {
        guard let cause = EventExplanation.Cause(rawValue: name) else { return name }
        return switch cause {
        case .otherShard: "the record is one part of an event for many, and they are in another."
        case .otherEnvironment:
            "they are in the other environment. Leave environment out to reach both."
        case .otherClass:
            "the event is for other classes. Add theirs to classes, or leave classes out."
        case .otherKind: "the event is for other kinds. Add theirs to kinds, or leave kinds out."
        case .otherPushType:
            "the event's push is of a type that their class is not sent. An event without a "
                + "payload reloads controls and widgets."
        case .activityRuns:
            "the event starts a Live Activity, and these are tokens or channels of activities that "
                + "run."
        case .startsActivities:
            "the event changes a Live Activity, and these are tokens that start one."
        case .changesUnwanted:
            "their registrations do not say onChange, and the event has no payload."
        case .noPushForChange: "their class is sent payloads alone, and the event has none."
        case .suppressed:
            "they are suppressed. lamplighter explain --token-id says by which answer of APNs."
        case .otherSender:
            "another sender serves them: lamplighter restrictions says how far the app's rollout is."
        case .expired: "the event has expired, so nothing is sent for it."
        case .dropped: "an operator drops them, or the events of the topic or the subject."
        }
    }
}
