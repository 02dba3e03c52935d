// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Intake
internal import Logging
internal import Pipeline

extension PlannerLoop {
    /// Goes by a reloaded configuration, as far as a running planner can. Between two turns, so that
    /// no decision is made by half of it.
    mutating func adoptReloadedPlan() {
        guard let reloaded = control.takeReloadedPlan() else { return }
        do throws(TopicBindingError) {
            try pipeline.adopt(reloaded.pipeline, bindings: reloaded.bindings)
            plan.adopt(reloaded)
        } catch {
            // The configuration's checks know all of it; what they missed changes nothing.
            logger.error("a reloaded configuration is not applied", metadata: ["cause": "\(error)"])
        }
    }
}
