// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Intake
internal import Logging
internal import Pipeline

extension PlannerLoop {
    /// Adopts a reloaded configuration, as far as a running planner can. This happens between two
    /// turns, so that no decision is based on half of it.
    mutating func adoptReloadedPlan() {
        guard let reloaded = control.takeReloadedPlan() else { return }
        do throws(TopicBindingError) {
            try pipeline.adopt(reloaded.pipeline.live, bindings: reloaded.bindings)
            plan.adopt(reloaded)
        } catch {
            // The configuration's checks should have found this. The old plan stays in effect.
            logger.error("cannot apply the reloaded configuration", metadata: ["cause": "\(error)"])
        }
    }
}
