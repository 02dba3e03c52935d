// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FleetKit
internal import Foundation

/// What `simulate devices` said at its end.
struct PhonesReport: Decodable, Equatable {
    var devices: Int
    /// Registrations that the registrar acknowledged.
    var acknowledged: Int
    /// Requests that had to be tried again.
    var retries: Int
    var failed: Int
    var failures: [String]
    /// Installations that are registered otherwise than the phone shows.
    var mismatches: [String]
    var pushes: Int
    var devicesReached: Int

    /// - Parameter output: the lines of the process's standard output; the report is the last.
    init?(output: String) {
        guard let line = output.split(separator: "\n").last,
            let report = try? JSONDecoder().decode(Self.self, from: Data(line.utf8))
        else { return nil }
        self = report
    }

    var isGood: Bool { failed == 0 && mismatches.isEmpty }

    var text: String {
        let registered =
            "\(devices.grouped) phones had \(acknowledged.grouped) registrations acknowledged, "
            + "\(retries.grouped) at a further try, and got \(pushes.grouped) pushes"
        guard !isGood else { return registered + "; all are registered as they show" }
        let named = (failures + mismatches.map { "\($0) is registered otherwise" }).prefix(3)
        return registered + ". WRONG: \(failed) refused, \(mismatches.count) registered otherwise: "
            + named.joined(separator: "; ")
    }
}
