// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Foundation
import Testing

/// `mutate_promises.py` leaves this suite out: in a mutated copy some mutation does not apply.
@Suite struct `The mutations in Tests Mutations` {
    private static let root = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    @Test func `the mutations apply to the sources as they are`() throws {
        let check = try Self.check(Self.root)
        #expect(check.status == 0, "\(check.output)")
        #expect(check.output.hasSuffix(" mutations apply\n"))
    }

    @Test func `the mutations are refused where one does not apply`() throws {
        let tree = try MutatedTree(
            MutatedTree.entry("gone", text: "a text that is not there")
                + MutatedTree.entry("twice", text: "count += 1")
                + MutatedTree.entry("half-a-line", text: "count += 1\nopened")
                + MutatedTree.entry("no-type", text: "count += 1", type: "Nobody")
                + MutatedTree.entry("no-promise", text: "opened = true", promise: "delivery 2")
                + MutatedTree.entry("no-test", text: "opened = true", tests: "^StagesTests.*no"))
        defer { tree.remove() }

        let check = try Self.check(tree.root)
        #expect(check.status == 1)
        for message in [
            "gone: the text is not there\n", "twice: the text occurs 2 times\n",
            "half-a-line: the text is not there\n", "no-type: there is no type Nobody\n",
            "no-promise: there is no promise 'delivery 2'\n",
            "no-test: the filter '^StagesTests.*no' matches the name of no test",
        ] {
            #expect(check.output.contains("area.toml: \(message)"), "\(check.output)")
        }
        #expect(check.output.contains("6 problems"), "\(check.output)")
    }

    @Test func `the mutations apply to a file that was moved and a type that was renamed`() throws {
        let tree = try MutatedTree(
            MutatedTree.entry("in-a-type", text: "count += 1", type: "Door")
                + MutatedTree.entry(
                    "of-lines", text: "opened = true\n}", promise: "security: Thief"))
        defer { tree.remove() }
        let before = try Self.check(tree.root)
        #expect(before.output == "2 mutations apply\n")

        let (file, folder) = (tree.root.appending(path: MutatedTree.file), "Sources/Drivers/House")
        let moved = try String(contentsOf: file, encoding: .utf8)
            .replacing("Window", with: "Skylight").replacing("\n", with: "\n    ")
        try FileManager.default.removeItem(at: file)
        try tree.write("enum House {\n    \(moved)\n}\n", to: "\(folder)/House.swift")
        let after = try Self.check(tree.root)
        #expect(after.output == "2 mutations apply\n")
    }

    private static func check(_ tree: URL) throws -> (status: Int32, output: String) {
        let process = Process()
        let pipe = Pipe()
        process.executableURL = root.appending(path: "scripts/mutate_promises.py")
        process.arguments = ["--check", "--root", tree.path]
        process.environment = ProcessInfo.processInfo.environment.filter { $0.key != "ONLY" }
        process.standardOutput = pipe
        process.standardError = pipe
        try process.run()
        let output = try pipe.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        return (process.terminationStatus, String(decoding: output, as: UTF8.self))
    }
}

/// A small program with a source, a test, a promise and a threat, and mutations of it.
private struct MutatedTree {
    static let file = "Sources/Stages/Doors/Door.swift"
    let root = FileManager.default.temporaryDirectory
        .appending(path: "lamplighter-mutations-\(UUID())")

    init(_ mutations: String) throws {
        try write(
            """
            struct Door {
                mutating func open() {
                    count += 1
                    opened = true
                }
            }

            struct Window {
                mutating func open() { count += 1 }
            }
            """, to: Self.file)
        try write("@Suite struct `A door` {}", to: "Tests/StagesTests/DoorTests.swift")
        try write("1. A door MUST open.", to: "docs/delivery.md")
        try write("### Thief", to: "SECURITY.md")
        try write(mutations, to: "Tests/Mutations/area.toml")
    }

    static func entry(
        _ name: String, text: String, type: String? = nil, promise: String = "delivery 1",
        tests: String = "^StagesTests.*A door"
    ) -> String {
        """
        [[mutation]]
        name = "\(name)"
        breaks = "Nothing."
        promise = "\(promise)"
        tests = ['\(tests)']
        [[mutation.edit]]
        text = '''\(text)'''
        replacement = ''
        \(type.map { "type = '\($0)'" } ?? "")

        """
    }

    func write(_ text: String, to path: String) throws {
        let place = root.appending(path: path)
        try FileManager.default.createDirectory(
            at: place.deletingLastPathComponent(), withIntermediateDirectories: true)
        try text.write(to: place, atomically: true, encoding: .utf8)
    }

    func remove() { try? FileManager.default.removeItem(at: root) }
}
