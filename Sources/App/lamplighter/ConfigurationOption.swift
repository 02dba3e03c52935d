// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import ArgumentParser
import Configuration
import Foundation
import Logging

/// The option `--config` and the loading of the configuration, shared by all commands that need it.
struct ConfigurationOption: ParsableArguments {
    @Option(
        name: .customLong("config"),
        help: "The YAML configuration file. Every key can also be set as LAMPLIGHTER_… variable.")
    var file: String?

    func load(
        for purpose: Configuration.Purpose = .worker
    ) throws(InvalidConfiguration) -> Configuration {
        try Configuration.load(
            file: file, environment: ProcessInfo.processInfo.environment, for: purpose)
    }

    /// Makes a logger that writes to standard error as configured.
    static func logger(_ log: Configuration.Log) -> Logger {
        LiveLog(log).logger
    }
}
