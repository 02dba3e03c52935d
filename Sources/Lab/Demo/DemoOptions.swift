// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import FleetKit

/// How a demo is run.
package struct DemoOptions: Sendable {
    package var programs: FleetPrograms
    /// Of events; starting, waiting for the last push and the result come on top.
    package var duration = Duration.seconds(40)
    package var installations = 3000
    /// Events a second.
    package var rate = 250.0
    /// auto, nghttp2 or curl.
    package var transport = "auto"
    package var workers = 2
    /// Standard output has the checker's JSON and nothing else.
    package var isJSON = false
    /// Where everything is written and kept; nil for a folder that is removed.
    package var directory: String?
    /// A file for the view's data, NDJSON.
    package var recording: String?
    /// Seconds since 1970 from which the first push is timed; nil for now.
    package var startedAt: Double?

    package init(_ programs: FleetPrograms) { self.programs = programs }

    package static let durations = 5.0...3600

    /// Nobody registers once there are events, and offsets that are held for no longer than
    /// `registrationGrace` leave less to be read again after a kill.
    func fleetPlan(directory: String) -> FleetPlan {
        var plan = FleetPlan.underTraffic(
            programs: programs, directory: directory,
            transports: Array(repeating: transport, count: workers),
            traffic: ["--installations", "\(installations)", "--rate", "\(rate)"])
        plan.configuration.delivery = [("shutdownTimeout", "5s")]
        return plan
    }
}
