// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import ArgumentParser
import Entrypoint

/// The program for trying Lamplighter out and for proving its promises. Nothing of it runs in a
/// cluster: the worker's program links none of this code.
@main
struct LamplighterLab: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "lamplighter-lab",
        abstract: "Tries Lamplighter out without Kafka and Apple, and proves that nothing is lost.",
        discussion: """
            Its fleets run the lamplighter program that is to be found beside this one.

            Exit codes: 0; 1 something was lost, or another promise was broken; 64 usage; 65 an \
            input cannot be read; 69 lamplighter is not there, or Kafka unreachable; 70 internal; \
            78 a file, a folder or a port cannot be used.
            """,
        version: Version.text(of: "lamplighter-lab"),
        subcommands: [
            DemoCommand.self, FleetCommand.self, SimulateCommand.self, VerifyCommand.self,
            ChaosCommand.self,
            DecodeCommand.self, DemoPictureCommand.self,
        ])

    static func main() { Program.main(Self.self) }
}
