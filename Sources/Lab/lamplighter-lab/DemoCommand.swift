// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import ArgumentParser
import Demo
import Entrypoint
import FleetKit

struct DemoCommand: ParsableCommand, StopsInOrder {
    static let configuration = CommandConfiguration(
        commandName: "demo",
        abstract: "Shows two workers under traffic, kills them, and proves that nothing was lost.",
        discussion: """
            An embedded Kafka, an APNs simulator, a registrar, two workers and their traffic, each a \
            process. Phones register with the registrar over HTTP; 200 of them go on changing what \
            they show. At a terminal keys disturb it; without any it disturbs itself: three workers \
            and the registrar are killed, APNs stalls, a storm of GOAWAY, a burst of 503, each when \
            pushes flow, as many as the duration has room for. Ctrl-C ends the traffic; once more, the wait for what is owed. It ends with the \
            result of the checker (verify).

            Exit codes: 0 nothing was lost; 1 something was, a phone is registered \
            otherwise than it shows, or a worker ended by itself; 69 \
            lamplighter is not there; 70 it could not be run to its end; 78 a file or folder \
            cannot be used; 130 it was ended before there was a result.
            """)

    @Option(help: "How long there is traffic: 40s, 10m, or a number of seconds.")
    var duration = DurationArgument(.seconds(40))

    @Option(help: "How many installations, rounded down to whole homes.")
    var installations = 3000

    @Option(help: "Events a second.")
    var rate = 250.0

    @Option(help: "auto, nghttp2 or curl.")
    var transport = "auto"

    @Flag(help: "Print the checker's JSON on standard output, all else on standard error.")
    var json = false

    @Option(
        help: ArgumentHelp(
            "Write everything into this empty folder, and keep it.", valueName: "folder"))
    var keep: String?

    @Option(help: ArgumentHelp("Write what the view shows, NDJSON.", valueName: "file"))
    var record: String?

    @Option(help: .hidden)
    var startedAt: Double?

    func validate() throws {
        try TrafficArguments.check(installations: installations, rate: rate)
        let durations = DemoOptions.durations
        guard durations.contains(duration.seconds) else {
            throw ValidationError(
                "--duration is from \(durations.lowerBound) to \(durations.upperBound) seconds, such as 40s"
            )
        }
        guard ["auto", "nghttp2", "curl"].contains(transport) else {
            throw ValidationError("--transport is auto, nghttp2 or curl")
        }
    }

    func run() throws {
        switch try DemoRun(try options()).run() {
        case .proven: return
        case .failed: throw ExitCode(1)
        // Shells use 130 for a command that SIGINT has ended.
        case .none: throw ExitCode(130)
        }
    }

    private func options() throws -> DemoOptions {
        var options = DemoOptions(try FleetPrograms())
        options.duration = duration.duration
        options.installations = installations
        options.rate = rate
        options.transport = transport
        options.isJSON = json
        options.directory = keep
        options.recording = record
        options.startedAt = startedAt
        return options
    }
}
