// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Entrypoint
internal import Foundation
internal import PushModel
internal import RegistrarRules
internal import Testing

@testable internal import lamplighter

@Suite struct `The coverage of registrations` {
    private func list(_ text: String) throws -> InstallationList {
        let file = FileManager.default.temporaryDirectory
            .appending(path: "installations-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: file) }
        try text.write(to: file, atomically: true, encoding: .utf8)
        return try InstallationList(file.path)
    }

    private func target(
        _ installation: String, _ tokenClass: TokenClass, handler: String = "H"
    ) -> ListedTarget {
        ListedTarget(
            head: .init(
                key: InstallationKey(
                    environment: .production, app: "com.example.Home", installation: installation),
                handler: handler, registeredAt: WallTime(milliseconds: 0),
                writtenAt: WallTime(milliseconds: 0)),
            tokenClass: tokenClass, token: [1], hearsChanges: false, shows: [])
    }

    @Test func `a list has each installation once, whatever surrounds it`() throws {
        let list = try list("a\n b \r\n\n\na\nc")
        #expect(list.count == 3)
        #expect(Set(["a", "b", "c"].map { list.number(of: $0) }) == [0, 1, 2])
        #expect(list.number(of: " b") == nil && list.number(of: "d") == nil)
    }

    @Test func `coverage says how many are registered by class, and how many only imported`() throws
    {
        var coverage = RegistrationCoverage(try list("a\nb\nc\nd"))
        coverage.note(target("a", .control))
        coverage.note(target("a", .control))
        coverage.note(target("b", .device, handler: "imported.device"))
        coverage.note(target("a", .device, handler: "imported.device"))
        coverage.note(target("a", .device))
        coverage.note(target("e", .control))
        #expect(
            coverage.lines(unreadable: 0) == [
                "4 installations",
                "control  1 registered (25.0 %)",
                "device  1 registered (25.0 %), 1 only imported",
                "any class  1 registered (25.0 %), 1 only imported",
            ])
        let json = try coverage.json(unreadable: 2)
        #expect(json.contains(#""onlyImported":{"any class":1,"control":0,"device":1}"#), "\(json)")
        #expect(json.contains(#""unreadable":2"#))
    }

    @Test(arguments: [
        ("", "has no line"), ("\n \n", "has no line"),
        (String(repeating: "a", count: 1025), ":1: it is longer than 1024 bytes"),
    ])
    func `a file that is no list is refused`(text: String, expected: String) {
        do {
            _ = try list(text)
            Issue.record("it was taken")
        } catch {
            #expect(Failure(error).status == .unreadableInput)
            #expect(Failure(error).message.contains(expected))
        }
    }
}
