// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import ArgumentParser
import Demo
import Foundation

/// `make demo-picture`.
struct DemoPictureCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "demo-picture",
        abstract: "Makes an SVG of what lamplighter demo --record has written.",
        shouldDisplay: false)

    @Argument(help: "The recording.")
    var recording: String

    @Argument(help: "Where to write the SVG.")
    var picture: String

    func run() throws {
        do {
            let text = try String(contentsOfFile: recording, encoding: .utf8)
            try DemoPicture.svg(recording: text)
                .write(toFile: picture, atomically: true, encoding: .utf8)
        } catch {
            let failure = Failure(error)
            StandardError.write("lamplighter: \(failure.message)")
            throw ExitCode(failure.status.rawValue)
        }
    }
}
