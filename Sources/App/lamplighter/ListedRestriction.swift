// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Entrypoint
import PushModel

/// A line of `restrictions`: a restriction, or in the history that one was lifted.
struct ListedRestriction: Encodable {
    /// When it was asked for; nil for one of the configuration.
    let at: String?
    let what: String
    /// `pause`, `drop`, `limit`, `rollout` or `resume`.
    let action: String
    let perSecond: Int?
    /// Of a rollout: its steps, and the tokens that are sent to in any case.
    let steps: [Step]?
    let tokens: [String]?

    struct Step: Encodable {
        let percent: Int
        let from: String
    }
    let until: String?
    let by: String?
    let reason: String?

    init(_ scope: Restriction.Scope, _ restriction: Restriction) {
        at = restriction.at.rfc3339
        what = "\(scope)"
        action = restriction.action.word
        perSecond = restriction.action.perSecond
        let rollout = restriction.action.rollout
        steps = rollout?.steps.map { Step(percent: $0.percent, from: $0.from.rfc3339) }
        tokens = rollout?.tokens.map { "\(TokenName(number: $0))" }
        until = restriction.until?.rfc3339
        by = restriction.by
        reason = restriction.reason
    }

    init(_ configured: ConfiguredRestriction) {
        what = "\(configured.scope)"
        action = configured.action.word
        perSecond = configured.action.perSecond
        by = ConfiguredRestriction.by
        (at, until, reason) = (nil, nil, nil)
        (steps, tokens) = (nil, nil)
    }

    init(lifted scope: Restriction.Scope, at: WallTime, by: String?, reason: String?) {
        self.at = at.rfc3339
        what = "\(scope)"
        action = "resume"
        (perSecond, until) = (nil, nil)
        (steps, tokens) = (nil, nil)
        self.by = by
        self.reason = reason
    }

    /// - Parameter unended: what stands where the end of a restriction is not set.
    func line(unended: String? = nil) -> String {
        let rate =
            perSecond.map { "\(action) to \($0)/s" }
            ?? steps.map { steps in
                let last = steps[steps.count - 1]
                let named =
                    tokens?.isEmpty == false ? " and \(tokens!.joined(separator: ", "))" : ""
                return "\(action) to \(last.percent) % from \(last.from) on\(named)"
            } ?? action
        guard let at else {
            return "\(rate)  \(TerminalText.visible(what))  by \(ConfiguredRestriction.by)"
        }
        var words = [at, rate, TerminalText.visible(what)]
        if let by { words.append("by \(TerminalText.visible(by))") }
        if let end = until.map({ "until \($0)" }) ?? unended { words.append(end) }
        if let reason { words.append("\"\(TerminalText.visible(reason))\"") }
        return words.joined(separator: "  ")
    }
}
