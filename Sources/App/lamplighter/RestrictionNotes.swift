// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import PushModel
import Worker

/// What `pause`, `drop` and `limit` say of the restrictions that stood before their own, and of
/// those that stay beside it.
struct RestrictionNotes {
    private let action: Restriction.Action
    private let scope: Restriction.Scope

    init(_ action: Restriction.Action, of scope: Restriction.Scope) {
        self.action = action
        self.scope = scope
    }

    /// A line about the restriction of the same scope, whose record the command's replaces.
    static func replaced(_ former: Restriction) -> String {
        let end = former.until.map { "until \($0.rfc3339)" } ?? "until it is resumed"
        let reason = former.reason.map { ", \"\($0.printable)\"" } ?? ""
        return "replaces: \(past(former.action)) by \(former.by.printable) since "
            + "\(former.at.rfc3339), \(end)\(reason)"
    }

    /// A line for each restriction of the configuration that is about the same, and for each whose
    /// action counts before the command's.
    func staying(of configured: [ConfiguredRestriction]) -> [String] {
        configured.compactMap { other in
            guard countsBefore(other.scope, other.action) else {
                return other.scope == scope ? line(other, "also when this has ended") : nil
            }
            return line(other, "which counts before this")
        }
    }

    /// A line for each other restriction of a command whose action counts before this one's.
    func staying(besides standing: [Restriction.Scope: Restriction]) -> [String] {
        standing.filter { $0.key != scope && countsBefore($0.key, $0.value.action) }.map { other in
            line(other.key, other.value.action, by: other.value.by, "which counts before this")
        }.sorted()
    }

    /// Whether the restriction counts before the command's for some pushes or events. Of limits
    /// that are not about the same, the narrowest counts, not the lowest.
    private func countsBefore(
        _ other: Restriction.Scope, _ otherAction: Restriction.Action
    ) -> Bool {
        guard otherAction.isStricter(than: action) else { return false }
        return other == scope || otherAction.perSecond == nil && other.overlaps(scope)
    }

    private func line(_ other: ConfiguredRestriction, _ consequence: String) -> String {
        line(other.scope, other.action, by: ConfiguredRestriction.by, consequence)
    }

    private func line(
        _ other: Restriction.Scope, _ action: Restriction.Action, by author: String,
        _ consequence: String
    ) -> String {
        "stays: \(other), \(Self.past(action)) by \(author.printable), \(consequence)"
    }

    private static func past(_ action: Restriction.Action) -> String {
        switch action {
        case .pause: "paused"
        case .drop: "dropped"
        case .limit(let rate): "limited to \(rate)/s"
        case .rollout(let rollout): "rolled out to \(rollout.steps.last!.percent) %"
        }
    }
}

extension Restriction.Scope {
    /// Whether a push may be of both.
    fileprivate func overlaps(_ other: Self) -> Bool {
        guard case .pushes(let app, let tokenClass) = self,
            case .pushes(let otherApp, let otherClass) = other
        else { return false }
        return (app == nil || otherApp == nil || app == otherApp)
            && (tokenClass == nil || otherClass == nil || tokenClass == otherClass)
    }
}
