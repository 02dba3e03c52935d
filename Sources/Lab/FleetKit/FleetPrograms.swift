// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import Foundation

/// The programs that a fleet's processes run.
package struct FleetPrograms: Sendable {
    /// The path of `lamplighter`, which the workers are.
    package let lamplighter: String
    /// The path of `lamplighter-lab`, which everything else is.
    package let lab: String

    /// - Parameter folder: where both programs are.
    package init(in folder: URL) throws(MissingProgram) {
        lamplighter = try Self.program("lamplighter", in: folder)
        lab = try Self.program("lamplighter-lab", in: folder)
    }

    /// Those that lie beside the running program.
    package init() throws {
        let running = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        try self.init(in: URL(filePath: running).deletingLastPathComponent())
    }

    private static func program(
        _ name: String, in folder: URL
    ) throws(MissingProgram) -> String {
        let path = folder.appending(path: name).path
        guard FileManager.default.isExecutableFile(atPath: path) else {
            throw MissingProgram(path: path)
        }
        return path
    }
}

/// A program that a fleet needs is not where it is looked for.
package struct MissingProgram: Error, CustomStringConvertible {
    package let path: String

    package var description: String { "\(path) is missing: build it with make build" }
}
