// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import ArgumentParser
import Entrypoint
import Foundation

/// The commands of `lamplighter-lab` that people look for in this program.
enum LabCommands {
    private static let names: Set = ["chaos", "demo", "demo-picture", "simulate"]

    /// If the command line names one of them, ends the process with a line that says where it is.
    static func refuse(_ arguments: [String]) {
        guard let name = arguments.dropFirst().first(where: { $0 != "help" }),
            names.contains(name)
        else { return }
        StandardError.write(
            "lamplighter: '\(name)' is a command of lamplighter-lab: "
                + "lamplighter-lab \(name)")
        exit(ExitCode.validationFailure.rawValue)
    }
}
