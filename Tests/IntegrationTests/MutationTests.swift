// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Foundation
import Testing

/// `mutate.py` leaves this suite out: in a mutated copy some mutation does not apply.
@Suite struct `The mutations in Tests Mutations` {
    private static let root = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    @Test func `the mutations apply to the sources as they are`() throws {
        let check = try Self.check([])
        #expect(check.status == 0, "\(check.output)")
        #expect(check.output.hasSuffix(" mutations apply\n"))
    }

    @Test(arguments: [
        // (file, text, tests, what the check says)
        ("Package.swift", "a text that is not there", "^StagesTests", "the text is not there"),
        ("Package.swift", "import", "^StagesTests", "the text occurs"),
        ("Sources/Gone.swift", "a text", "^StagesTests", "there is no file Sources/Gone.swift"),
        (
            "Package.swift", "import PackageDescription", "^StagesTests.*no such",
            "'^StagesTests.*no"
        ),
    ])
    func `the mutations are refused where one does not apply`(
        file: String, text: String, tests: String, message: String
    ) throws {
        let folder = FileManager.default.temporaryDirectory
            .appending(path: "lamplighter-mutations-\(UUID())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let entry = """
            [[mutation]]
            name = "a-name"
            breaks = "Nothing."
            tests = ['\(tests)']
            [[mutation.edit]]
            file = '\(file)'
            text = '\(text)'
            replacement = ''
            """
        try entry.write(
            to: folder.appending(path: "area.toml"), atomically: true, encoding: .utf8)

        let check = try Self.check(["--mutations", folder.path])
        #expect(check.status == 1)
        for part in ["area.toml: a-name", message] {
            #expect(check.output.contains(part), "\(check.output)")
        }
    }

    private static func check(_ arguments: [String]) throws -> (status: Int32, output: String) {
        let process = Process()
        let pipe = Pipe()
        process.executableURL = root.appending(path: "scripts/mutate_promises.py")
        process.arguments = ["--check"] + arguments
        process.environment = ProcessInfo.processInfo.environment.filter { $0.key != "ONLY" }
        process.standardOutput = pipe
        process.standardError = pipe
        try process.run()
        let output = try pipe.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        return (process.terminationStatus, String(decoding: output, as: UTF8.self))
    }
}
