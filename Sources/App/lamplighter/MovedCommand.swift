// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import ArgumentParser
import Entrypoint
import Foundation

/// Commands that were once here and are those of `lamplighter-lab` now.
enum MovedCommand {
    private static let names: Set = ["chaos", "demo", "demo-picture", "simulate"]

    /// Ends the process with a line that says where the command is, if it names one of them.
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
