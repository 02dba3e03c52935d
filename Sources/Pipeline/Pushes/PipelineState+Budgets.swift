// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Planning
internal import PushModel

extension PipelineState {
    /// APNs has accepted a push, and a push type has a budget.
    // Not inlined, since no push needs it as long as there is no budget.
    @inline(never)
    mutating func countAgainstBudget(_ push: PushTable.AcceptedPush, now: Now) {
        // The token as it was sent: the audience may have forgotten it.
        let token = UnsafeRawBufferPointer(slab.token(push.slot))
        guard budgets.accepted(push.token, token, push.type, now: now.wall) else { return }
        counters.pushesOverBudget += 1
        budgets.countSubject(of: pushes[push.slot].content, app: traits(of: push.route).app)
    }
}
