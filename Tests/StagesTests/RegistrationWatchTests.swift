// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Importing
internal import OpenSSL
internal import PushModel
internal import RecordFormats
internal import RegistrarRules
internal import Testing

@Suite struct `A registration watch` {
    private static let app = "com.example.Home"
    private static let early = WallTime(rfc3339: "2026-01-01T00:00:00Z")!
    private static let late = WallTime(rfc3339: "2026-02-01T00:00:00Z")!

    private struct World: ~Copyable {
        var watch = RegistrationWatch(seed: 7) { SHA256Digest.of($0) }
        mutating func take(
            _ installation: String, _ handler: String, _ value: String?,
            at time: WallTime = late, tokenClass: String? = nil
        ) {
            let key = Array("production/\(app)/\(installation)/\(handler)".utf8)
            key.withUnsafeBytes { key in
                lending(value.map { Array($0.utf8) }) { value in
                    lending(tokenClass.map { Array($0.utf8) }) { tokenClass in
                        watch.take(
                            key: key, value: value, timestamp: time, tokenClass: tokenClass)
                    }
                }
            }
        }

        /// The imports that have ended since it was asked last.
        mutating func ended() -> [String] {
            watch.takeEnded().map { "\($0.key.installation) \($0.tokenClass.name)" }
        }

        mutating func judge(_ row: ImportedRow) -> RegistrationWatch.Decision {
            watch.judge(row, watch.key(of: row))
        }
    }

    private static func row(
        _ installation: String?, _ token: [UInt8] = [1, 2], seen: WallTime? = early,
        _ tokenClass: TokenClass = .device
    ) -> ImportedRow {
        ImportedRow(
            line: 1, (.production, app, installation), (tokenClass, token), lastSeen: seen,
            subjects: ["x"])
    }

    private static func value(_ tokenClass: String, _ token: String, at time: WallTime) -> String {
        #"{"v":1,"registeredAt":"\#(time.rfc3339)","targets":[{"class":"\#(tokenClass)","#
            + #""token":"\#(token)","shows":[{"subjects":["x"]}]}]}"#
    }

    @Test func `a row is written once, and again when it was seen later`() {
        var world = World()
        #expect(world.judge(Self.row("A")) == .new)
        #expect(world.judge(Self.row("A")) == .known)
        #expect(world.judge(Self.row("A", seen: nil)) == .known)
        #expect(world.judge(Self.row("A", seen: Self.late)) == .later)
        #expect(world.judge(Self.row("A")) == .known)
        #expect(world.judge(Self.row("A", [1, 2], seen: Self.early, .voip)) == .new)
        #expect(world.judge(Self.row("B", seen: nil)) == .new)
        #expect(world.judge(Self.row("B", seen: nil)) == .known)
    }

    @Test func `what was imported before is known from the topic`() {
        var world = World()
        world.take("A", "imported.device", Self.value("device", "0102", at: Self.early))
        #expect(world.judge(Self.row("A")) == .known)
        #expect(world.judge(Self.row("A", seen: Self.late)) == .later)
        #expect(world.ended().isEmpty)
    }

    @Test func `an installation that has registered its class itself is left alone`() {
        var world = World()
        world.take("A", "Any", Self.value("device", "0a0b", at: Self.early), at: Self.early)
        #expect(world.judge(Self.row("A", seen: Self.late)) == .registeredItself)
        #expect(world.judge(Self.row("A", [1], seen: Self.late, .voip)) == .new)
        // By its token, whatever the sender calls the installation.
        #expect(world.judge(Self.row(nil, [10, 11], seen: Self.late)) == .registeredItself)
        #expect(world.judge(Self.row("B", [10, 11], seen: Self.late)) == .registeredItself)
    }

    @Test func `an installation without targets is one of the class in its header, or of any`() {
        let empty = #"{"v":1,"targets":[]}"#
        var world = World()
        world.take("A", "Any", empty, tokenClass: "device")
        world.take("B", "Any", empty)
        world.take("C", "default.controls", empty)
        #expect(world.judge(Self.row("A")) == .registeredItself)
        #expect(world.judge(Self.row("A", [1], .widget)) == .new)
        #expect(world.judge(Self.row("B", [1], .widget)) == .registeredItself)
        #expect(world.judge(Self.row("C")) == .new)
        #expect(world.judge(Self.row("C", [1], .control)) == .registeredItself)
    }

    @Test(arguments: ["imported.device", "default.device", "Any"])
    func `what was removed is imported only if it was seen since`(handler: String) {
        var world = World()
        world.take("A", handler, nil, at: Self.late)
        #expect(world.judge(Self.row("A", seen: Self.early)) == .known)
        #expect(world.judge(Self.row("A", seen: nil)) == .known)
        let since = WallTime(milliseconds: Self.late.milliseconds + 1000)
        #expect(world.judge(Self.row("A", seen: since)) == .later)
    }

    @Test func `who registers while rows are written ends what was written`() {
        var world = World()
        #expect(world.judge(Self.row("A")) == .new)
        #expect(world.judge(Self.row(nil, [3, 4])) == .new)
        world.take("A", "Any", Self.value("device", "0506", at: Self.late))
        #expect(world.ended() == ["A device"])
        let name = ImportedRegistration.installation(ofTokenDigest: SHA256Digest.of([3, 4]))
        world.take("Z", "Any", Self.value("device", "0304", at: Self.late))
        #expect(world.ended() == ["\(name) device"])
        #expect(world.judge(Self.row(nil, [3, 4], seen: Self.late)) == .registeredItself)
    }

    @Test func `who removes while rows are written ends what was written`() {
        var world = World()
        #expect(world.judge(Self.row("A")) == .new)
        world.take("A", "default.device", nil)
        #expect(world.ended() == ["A device"])
        world.take("A", "default.widgets", nil)
        #expect(world.ended().isEmpty)
    }

    @Test func `an import that was seen after a removal stays, in whatever order they are read`() {
        for isImportFirst in [true, false] {
            var world = World()
            if !isImportFirst { world.take("A", "default.device", nil, at: Self.early) }
            world.take("A", "imported.device", Self.value("device", "0102", at: Self.late))
            if isImportFirst { world.take("A", "default.device", nil, at: Self.early) }
            #expect(world.ended().isEmpty)
            world.take("A", "default.device", nil, at: Self.late)
            #expect(world.ended() == ["A device"])
        }
    }

    @Test func `a removal ends the import of its class, and none where that is not said`() {
        var world = World()
        world.take("A", "imported.device", Self.value("device", "0102", at: Self.early))
        world.take("A", "Lights", nil)
        world.take("A", "Lights", nil, tokenClass: "controls")
        #expect(!world.ended().contains("A device"))
        world.take("A", "Lights", nil, tokenClass: "device")
        #expect(world.ended() == ["A device"])
    }

    @Test
    func `imports that are forgotten are written again, and end with a registration all the same`()
    {
        var world = World()
        world.watch = RegistrationWatch(seed: 7, forgetsImports: true) { SHA256Digest.of($0) }
        for name in ["A", "B"] {
            world.take(name, "imported.device", Self.value("device", "0102", at: Self.late))
        }
        #expect(world.judge(Self.row("B", seen: nil)) == .later)
        world.take("A", "Any", Self.value("device", "0506", at: Self.early), at: Self.early)
        #expect(world.ended() == ["A device"])
        #expect(world.judge(Self.row("A")) == .registeredItself)
    }

    @Test func `an import that is read after its installation's own registration has ended`() {
        var world = World()
        world.take("A", "Any", Self.value("device", "0506", at: Self.late))
        world.take("A", "imported.device", Self.value("device", "0102", at: Self.early))
        world.take("B", "Any", Self.value("device", "0506", at: Self.late))
        world.take("B", "imported.device", Self.value("device", "0102", at: Self.early))
        // It has been ended before.
        world.take("B", "imported.device", nil)
        #expect(world.ended() == ["A device"])
    }

    @Test func `claims and records that cannot be read say nothing`() {
        var world = World()
        world.take("A", "default.attest", #"{"v":1,"attestedKey":"k","targets":[]}"#)
        world.take("A", "Any", "not JSON")
        world.take("A/B", "Any", nil)
        #expect(world.judge(Self.row("A")) == .new)
        #expect(world.ended().isEmpty)
    }

    @Test func `a hundred thousand installations are told apart`() {
        var known = KnownInstallations(seed: 1)
        for number in 0..<100_000 {
            let seen = KnownInstallations.Seen(
                WallTime(milliseconds: 1_700_000_000_000 + Int64(number) * 1000))
            #expect(known.note(UInt64(number) &* 0x9E37_79B9_7F4A_7C15, seen) == nil)
        }
        #expect(known.count == 100_000)
        for number in 0..<100_000 {
            let seen = KnownInstallations.Seen(
                WallTime(milliseconds: 1_700_000_000_000 + Int64(number) * 1000))
            #expect(known[UInt64(number) &* 0x9E37_79B9_7F4A_7C15] == seen)
        }
        #expect(known[200_000 &* 0x9E37_79B9_7F4A_7C15] == nil)
    }
}
