// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Foundation
internal import LinuxIO

/// The folder that a run's processes write into.
package enum RunFolder {
    /// Makes a folder for temporary files with an unpredictable name.
    package static func temporary() throws(UnusablePath) -> String {
        let parent = FileManager.default.temporaryDirectory.path
        do {
            return try TemporaryFolder.make(in: parent, named: "lamplighter-demo")
        } catch {
            throw UnusablePath(
                parent, "no folder can be made there: \(error)",
                remedy: "set TMPDIR to a folder that you may write into, or name one with --keep")
        }
    }

    /// Makes the folder and its missing parents. Throws if it exists and is not empty.
    package static func prepare(_ path: String) throws(UnusablePath) {
        let files: [String]
        do {
            try FileManager.default.createDirectory(
                atPath: path, withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o700])
            files = try FileManager.default.contentsOfDirectory(atPath: path)
        } catch {
            throw UnusablePath(
                path, "no folder can be made there", remedy: "name one that you may write into")
        }
        guard FileManager.default.isWritableFile(atPath: path) else {
            throw UnusablePath(
                path, "nothing can be written there", remedy: "name one that you may write into")
        }
        guard files.isEmpty else {
            throw UnusablePath(
                path, "it is not empty, and two runs' logs would mix", remedy: "name another one")
        }
    }
}

/// Why a path that a user gave cannot be used, in one line.
package struct UnusablePath: Error, CustomStringConvertible {
    package let path: String
    package let problem: String
    package let remedy: String

    package init(_ path: String, _ problem: String, remedy: String) {
        self.path = path
        self.problem = problem
        self.remedy = remedy
    }

    package var description: String { "\(path): \(problem); \(remedy)" }
}
