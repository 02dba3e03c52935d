// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import ArgumentParser
import Demo
import FleetKit
import Foundation

/// The command behind `make demo-picture`.
struct DemoPictureCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "demo-picture",
        abstract: "Makes an SVG of what lamplighter-lab demo --record has written.",
        shouldDisplay: false)

    @Argument(help: "The recording.")
    var recording: String

    @Argument(help: "Where to write the SVG.")
    var picture: String

    func run() throws {
        guard let text = try? String(contentsOfFile: recording, encoding: .utf8) else {
            throw UnusablePath(
                recording, "it cannot be read",
                remedy: "name what lamplighter-lab demo --record has written")
        }
        let drawing = Data(try DemoPicture.svg(recording: text).utf8)
        guard FileManager.default.createFile(atPath: picture, contents: drawing) else {
            throw UnusablePath(
                picture, "it cannot be written",
                remedy: "name a file in a folder that is there")
        }
    }
}
