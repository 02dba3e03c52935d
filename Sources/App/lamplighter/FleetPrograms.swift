// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Foundation

/// The programs that a fleet's processes are: this one, and the checker, which lies beside it.
struct FleetPrograms {
    let lamplighter: String
    let checker: String

    init() throws {
        lamplighter = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        checker =
            URL(filePath: lamplighter).deletingLastPathComponent()
            .appending(path: "lamplighter-check").path
        guard FileManager.default.isExecutableFile(atPath: checker) else {
            throw Failure(
                .unavailable,
                "\(checker) is missing, which gives the verdict: build it with make build")
        }
    }
}
