// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import APNSDelivery
import Configuration
import Delivery
import Entrypoint
import PushModel
import Worker

extension SinglePush {
    /// Where the push goes, in words.
    func place(_ configuration: Configuration, _ plan: WorkerPlan) -> String {
        let environment = plan.routing.pools[Int(plan.routing[route].pool.rawValue)].environment
        let endpoint = configuration.apns.endpoints[environment]
        return "APNs \(environment.name) (\(endpoint.host):\(endpoint.port))"
    }

    /// Why nobody has answered, and what to do. Blocks for some seconds.
    ///
    /// - Parameter answer: what has come instead of an answer of APNs's, if anything.
    func unanswered(
        _ answer: Answer?, _ configuration: Configuration, _ plan: WorkerPlan, _ keys: SigningKeys
    ) -> Failure {
        let finding = probe(configuration: configuration, plan: plan, keys: keys)
        let doubt = answer?.outcome.kind == .unknown ? ". The push was sent: APNs may have it" : ""
        return Failure(
            finding.isConfiguration ? .configuration : .unavailable,
            "\(place(configuration, plan)) \(finding.wrong): \(finding.remedy)\(doubt)")
    }
}
