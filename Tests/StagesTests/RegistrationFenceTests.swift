// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Simdjson
internal import Testing

@testable internal import Registering

private typealias Desk = `A registration desk`

/// A removal of the handler, as it is in the log.
private func tombstone(at offset: Int64, handler: String = "Garage") -> RegistrationDesk.Record {
    RegistrationDesk.Record(
        partition: 0, offset: offset, key: Desk.key, handler: handler, summary: nil, writer: 7)
}

@Suite struct `The fence of registrations` {
    @Test func `all records before an own removal count for nothing, not only the first of them`() {
        var desk = Desk.owner()
        desk.take(Desk.record(17, at: 0))
        desk.remove(RegistrationDesk.Removal(key: Desk.key, handler: "Garage"), in: 0, as: 1)
        desk.reported(Desk.split(desk.takeActions()).writes[0], offset: 5)
        for offset in 2...4 as ClosedRange<Int64> {
            desk.take(Desk.record(17 + offset, at: offset))
        }
        #expect(desk.registrations == 0)
        desk.take(tombstone(at: 5))
        desk.take(Desk.record(1, at: 6))
        #expect(desk.registrations == 1)
    }

    @Test func `a handler that was written twice leaves no name behind when it is removed`() {
        var desk = Desk.owner()
        desk.take(Desk.record(17, at: 0))
        desk.take(Desk.record(18, at: 1))
        #expect(desk.handlers.count == 1)
        desk.take(tombstone(at: 2))
        #expect(desk.registrations == 0 && desk.handlers.count == 0)
    }

    @Test func `a handler that comes after another was removed has its own name`() {
        var desk = Desk.owner()
        desk.take(Desk.record(17, at: 0))
        desk.take(tombstone(at: 1))
        desk.take(Desk.record(1, at: 2, handler: "Lights"))
        let listed = desk.list(Desk.key, in: [0])
        #expect(listed?.count == 1 && listed?.first?.handler == "Lights")
        desk.take(tombstone(at: 3, handler: "Lights"))
        #expect(desk.registrations == 0 && desk.handlers.count == 0)
    }
}

@Suite struct `The bounds of a snapshot` {
    /// Where a body with these targets is refused if it may have three subjects; nil if it is not.
    private static func refused(targets: String) -> String? {
        var limits = RegistrarLimits()
        limits.subjectsMax = 3
        let reader = SnapshotReader(limits: limits)
        var parser = JSONParser(bytesMax: 1 << 20, depthMax: 16)
        return Array(#"{"targets":[\#(targets)]}"#.utf8).withUnsafeBytes { bytes in
            do throws(InvalidMember) {
                let object = try SnapshotReader.object(in: bytes, parser: &parser)
                _ = try reader.snapshot(object, of: Desk.key, .controls, handler: "Garage")
                return nil
            } catch { return error.pointer }
        }
    }

    /// Where an object with this JSON has a member twice; nil if it has none.
    private static func repeated(_ json: String) -> String? {
        var parser = JSONParser(bytesMax: 1 << 20, depthMax: 16)
        return Array(json.utf8).withUnsafeBytes { bytes in
            do throws(InvalidMember) {
                let object = try SnapshotReader.object(in: bytes, parser: &parser)
                try RepeatedMember.check(object, at: "")
                return nil
            } catch { return error.pointer }
        }
    }

    @Test func `the subjects of all targets together are bounded`() {
        let one = #"{"token":"00","shows":[{"subjects":["a"]}]}"#
        let two = #"{"token":"01","shows":[{"subjects":["b"]},{"subjects":["c"]}]}"#
        #expect(Self.refused(targets: "\(one),\(two)") == nil)
        #expect(Self.refused(targets: "\(two),\(two)") == "/targets")
    }

    @Test func `a target without subjects counts as one that has one`() {
        let target = #"{"token":"00","shows":[]}"#
        #expect(Self.refused(targets: "\(target),\(target),\(target)") == nil)
        #expect(Self.refused(targets: "\(target),\(target),\(target),\(target)") == "/targets")
    }

    @Test(arguments: [2, 15, 16, 17, 40])
    func `a member that is there twice is found among many, however early its first`(count: Int) {
        let names = (0..<count).map { "m\($0)" }
        for name in ["m0", "m1", "m\(count - 1)"] {
            let once = names.map { "\"\($0)\":0" }.joined(separator: ",")
            #expect(Self.repeated("{\(once)}") == nil)
            #expect(Self.repeated("{\(once),\"\(name)\":1}") == "/\(name)")
        }
    }
}
