// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import FleetKit

/// The options of a demo.
package struct DemoOptions: Sendable {
    package var programs: FleetPrograms
    /// How long there are events. Starting, waiting for the last push and checking take extra time.
    package var duration = Duration.seconds(40)
    package var installations = 3000
    /// Phones that change what they show, beside the installations, which keep it.
    package var phones = 200
    /// Changes a second, of all phones together.
    package static let changeRate = 20.0
    /// Events a second.
    package var rate = 250.0
    /// The workers' `apns.transport`: auto, nghttp2 or curl.
    package var transport = "auto"
    package var workers = 2
    /// Whether standard output gets the checker's JSON and nothing else.
    package var isJSON = false
    /// The folder for all files, which is kept; nil for a temporary one that is removed.
    package var directory: String?
    /// The path of a recording of the view's figures in NDJSON; nil for none.
    package var recording: String?
    /// The start time for the first push's latency, in seconds since 1970; nil for now.
    package var startedAt: Double?

    package init(_ programs: FleetPrograms) { self.programs = programs }

    package static let durations = 5.0...3600

    /// The plan of the demo's fleet. Its stop is quick, so that ending the demo takes little time.
    func fleetPlan(directory: String) throws -> FleetPlan {
        var plan = FleetPlan.underTraffic(
            programs: programs, directory: directory,
            transports: Array(repeating: transport, count: workers),
            traffic: ["--installations", "\(installations)", "--rate", "\(rate)"])
        plan.configuration.delivery = [("shutdownTimeout", "5s")]
        plan.configuration.registrarPort = try ProcessFleet.freePort()
        return plan
    }
}
