// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Foundation
import Testing

@testable import LamplighterClientCore

@Suite struct `The outbox` {
    let folder: TemporaryFolder
    let outbox: Outbox

    init() throws {
        folder = try TemporaryFolder()
        outbox = Outbox(folder: folder.url)
    }

    func address(
        _ tokenClass: TokenClass? = .controls, _ handler: String? = "GarageControls",
        installation: String = "6F1C"
    ) throws -> Address {
        try Address(
            environment: .development, app: "com.example.Garage", installation: installation,
            tokenClass: tokenClass, handler: handler)
    }

    func pending() throws -> [Snapshot] { try outbox.pending(of: "6F1C").snapshots }

    @Test func `a snapshot is there for the next process`() throws {
        let put = try outbox.put(address(), .targets([.door(42)]))
        let again = Outbox(folder: folder.url)
        #expect(try again.pending(of: "6F1C").snapshots == [put])
    }

    @Test func `a newer snapshot of the same handler replaces the older one`() throws {
        try outbox.put(address(), .targets([.door(1)]))
        let newer = try outbox.put(address(), .targets([.door(2)]))
        #expect(try pending() == [newer])
    }

    @Test func `handlers and classes do not replace each other, and the oldest comes first`() throws
    {
        let addresses = try [
            address(.widgets, "default"), address(.controls, "A"), address(.controls, "B"),
            address(.device, "default"), address(.liveActivities, "A"),
        ]
        for address in addresses { try outbox.put(address, .targets([.door(1)])) }
        #expect(try pending().map(\.address) == addresses)
        let sequences = try pending().map(\.sequence)
        #expect(sequences == sequences.sorted() && Set(sequences).count == sequences.count)
    }

    @Test func `an acknowledged snapshot is gone, but not the one that has replaced it`() throws {
        let older = try #require(try outbox.put(address(), .targets([.door(1)])))
        let newer = try #require(try outbox.put(address(), .targets([.door(2)])))
        try outbox.acknowledge(older)
        #expect(try pending() == [newer])
        try outbox.acknowledge(newer)
        #expect(try pending().isEmpty)
    }

    @Test func `a complete set replaces what waits of control handlers, and nothing else`() throws {
        try outbox.put(address(.controls, "A"), .targets([.door(1)]))
        let widgets = try outbox.put(address(.widgets, "A"), .targets([.door(1)]))
        let complete = try outbox.put(address(.controls, nil), .controls(["B": [.door(2)]]))
        #expect(try pending() == [widgets, complete])
    }

    @Test func `a complete set whose writer was killed before it cleared up is the only one sent`()
        throws
    {
        let older = try #require(try outbox.put(address(.controls, "A"), .targets([.door(1)])))
        let file = try #require(try folder.pendingFiles().first)
        let complete = try outbox.put(address(.controls, nil), .controls(["A": []]))
        try older.encoded().write(to: file)
        #expect(try pending() == [complete])
        #expect(try folder.pendingFiles().count == 1)
    }

    @Test func `a handler's snapshot becomes a part of the complete set that waits`() throws {
        try outbox.put(address(.controls, nil), .controls(["A": [.door(1)], "B": [.door(2)]]))
        let joined = try outbox.put(address(.controls, "A"), .targets([.door(3)]))
        #expect(try pending() == [joined])
        #expect(joined?.content == .controls(["A": [.door(3)], "B": [.door(2)]]))
        #expect(joined?.address.handler == nil)
    }

    @Test func `what was read before something newer was put is kept out`() throws {
        let mark = try outbox.mark()
        try outbox.put(address(.controls, "A"), .targets([.door(2)]))
        #expect(try outbox.put(address(.controls, nil), .controls([:]), since: mark) == nil)
        #expect(try outbox.put(address(.widgets, "A"), .targets([]), since: mark) != nil)
        #expect(
            try outbox.put(address(.controls, nil), .controls([:]), since: outbox.mark()) != nil)
    }

    @Test(arguments: ["", "{", "[]", #"{"v":2}"#, #"{"v":1,"app":"../../x"}"#, "\u{0}\u{0}\u{0}"])
    func `a corrupt file is set aside, and the others are sent`(_ text: String) throws {
        try outbox.put(address(.controls, "A"), .targets([.door(1)]))
        let file = try #require(try folder.pendingFiles().first)
        let other = try outbox.put(address(.widgets, "B"), .targets([.door(2)]))
        try Data(text.utf8).write(to: file)
        let pending = try outbox.pending(of: "6F1C")
        #expect(pending.snapshots == [other])
        #expect(try pending.corrupt.map { try Data(contentsOf: $0) } == [Data(text.utf8)])
        #expect(try outbox.pending(of: "6F1C").corrupt.isEmpty)
    }

    @Test func `a file that names another address than its place is corrupt`() throws {
        try outbox.put(address(.controls, "A"), .targets([.door(1)]))
        let file = try #require(try folder.pendingFiles().first)
        let other = file.deletingLastPathComponent().appendingPathComponent("widgets+A.json")
        try FileManager.default.moveItem(at: file, to: other)
        #expect(try outbox.pending(of: "6F1C").corrupt.count == 1)
    }

    @Test func `what is set aside is bounded, and its reason is beside it`() throws {
        for number in 0..<(Outbox.setAsideMax + 4) {
            let snapshot = try #require(try outbox.put(address(), .targets([.door(number)])))
            try outbox.setAside(snapshot, reason: "reason \(number)")
        }
        let aside = folder.url.appendingPathComponent("set-aside")
        let names = try FileManager.default.contentsOfDirectory(atPath: aside.path)
        #expect(names.count == 2 * Outbox.setAsideMax)
        #expect(try pending().isEmpty)
    }

    @Test func `beyond the most that may wait, the oldest is dropped and reported`() throws {
        for number in 0...Outbox.snapshotsMax {
            try outbox.put(
                address(.liveActivities, "activity-\(number)"), .targets([.door(number)]))
        }
        let pending = try outbox.pending(of: "6F1C")
        #expect(pending.snapshots.count == Outbox.snapshotsMax)
        #expect(pending.dropped.map(\.address.handler) == ["activity-0"])
        #expect(try folder.pendingFiles().count == Outbox.snapshotsMax)
    }

    @Test func `snapshots of another installation are deleted, its removal is kept`() throws {
        try outbox.put(address(.widgets, "A", installation: "OLD"), .targets([.door(1)]))
        #expect(try pending().isEmpty)
        #expect(try folder.pendingFiles().isEmpty)
        try outbox.put(address(.widgets, "A", installation: "OLD"), .targets([.door(1)]))
        let removal = try outbox.put(address(nil, nil, installation: "OLD"), .removal)
        #expect(try pending() == [removal])
    }

    @Test func `what a killed writer left half written is deleted`() throws {
        try outbox.put(address(), .targets([.door(1)]))
        let file = try #require(try folder.pendingFiles().first)
        let half = file.deletingLastPathComponent().appendingPathComponent(".half.temporary")
        try Data("{".utf8).write(to: half)
        #expect(try pending().count == 1)
        #expect(!FileManager.default.fileExists(atPath: half.path))
    }

    @Test func `a copy for an upload stays as it was until it is over, or long forgotten`() throws {
        let clock = VirtualClock()
        let outbox = Outbox(folder: folder.url, now: { clock.now })
        let first = try #require(try outbox.put(address(), .targets([.door(1)])))
        let copy = try outbox.stage(first)
        try outbox.put(address(), .targets([.door(2)]))
        #expect(try Data(contentsOf: copy) == first.encoded())
        #expect(outbox.staged(copy.lastPathComponent) == first)
        clock.advance(by: 86_400)
        try outbox.unstageForgotten()
        #expect(outbox.staged(copy.lastPathComponent) == first)
        clock.advance(by: 2 * 86_400)
        try outbox.unstageForgotten()
        #expect(outbox.staged(copy.lastPathComponent) == nil)
        let other = try outbox.stage(first)
        try outbox.unstage(other.lastPathComponent)
        #expect(outbox.staged(other.lastPathComponent) == nil)
    }

    @Test(arguments: ["", ".", "..", "a/b", "a+b", "ä", "a b", String(repeating: "a", count: 129)])
    func `a name that is unfit for a path is refused`(_ name: String) throws {
        #expect(throws: Address.InvalidName.self) { try address(.controls, name) }
    }

    @Test func `a handler's name is made of its type's`() {
        struct GarageControls {}
        struct Generic<T> {}
        #expect(Address.handlerName(of: GarageControls.self) == "GarageControls")
        #expect(Address.handlerName(of: Generic<Int>.self) == "Generic-Int-")
    }
}
