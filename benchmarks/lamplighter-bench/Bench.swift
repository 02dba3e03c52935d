// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import ArgumentParser
import Foundation
import LinuxIO
import OpenSSL

/// The parts of the benchmarks that need the product's own types. Each subcommand does one thing and
/// prints one JSON object; the scripts beside it start servers, alternate with the yardstick and
/// write the results.
@main
struct Bench: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "lamplighter-bench",
        abstract: "Measures Lamplighter's parts; see benchmarks/README.md.",
        subcommands: [
            PipelineCommand.self, DispatchCommand.self, IndexCommand.self, LatencyCommand.self,
            RegisterCommand.self, EmitCommand.self, ProviderTokenCommand.self, ExplainCommand.self,
            RecordsCommand.self, FloodCommand.self,
        ])

    static func main() {
        // Writing to a socket that the peer has closed must fail, not end the process.
        BrokenPipe.ignoreSignal()
        // Delivery threads may be in the middle of something when the main one returns.
        OpenSSLLibrary.keepUntilExit()
        main(nil)
    }
}

/// Prints the figures of a subcommand for the script that started it.
enum Report {
    static func print(_ figures: some Encodable) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys]
        Swift.print(String(decoding: try encoder.encode(figures), as: UTF8.self))
    }
}

/// Why a measurement is invalid.
struct BenchError: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}
