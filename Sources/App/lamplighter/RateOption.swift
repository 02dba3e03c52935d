// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import ArgumentParser

/// The option `--rate` of commands that write many records.
struct RateOption: ParsableArguments {
    @Option(help: "The most records to write a second, such as 100 or 100/s.")
    var rate: String?

    func validate() throws { _ = try recordsPerSecond() }

    func recordsPerSecond() throws -> Int? {
        guard let rate else { return nil }
        let digits = rate.hasSuffix("/s") ? rate.dropLast(2) : Substring(rate)
        guard let number = Int(digits), (1...1_000_000).contains(number) else {
            throw ValidationError(
                "--rate is a number of records a second from 1 to 1,000,000, such as 100/s")
        }
        return number
    }
}
