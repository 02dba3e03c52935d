// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import Foundation

/// The programs that a fleet's processes run.
package struct FleetPrograms: Sendable {
    /// The path of `lamplighter`, which workers run.
    package let lamplighter: String
    /// The path of `lamplighter-lab`, which all other processes run.
    package let lab: String

    /// - Parameter folder: the folder of both programs.
    package init(in folder: URL) throws(MissingProgram) {
        lamplighter = try Self.program("lamplighter", in: folder)
        lab = try Self.program("lamplighter-lab", in: folder)
    }

    /// The programs in the folder of the running program.
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

/// A program that a fleet needs does not exist.
package struct MissingProgram: Error, CustomStringConvertible {
    package let path: String

    package var description: String { "\(path) is missing: build it with make build" }
}
