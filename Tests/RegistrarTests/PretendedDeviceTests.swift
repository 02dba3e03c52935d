// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Foundation
import PushModel
import Testing

@testable import Devices

@Suite struct `A pretended device` {
    static let time = WallTime(milliseconds: 1_800_000_000_000)

    @Test func `is the same for the same seed`() {
        var one = SplitMix64(seed: 4), other = SplitMix64(seed: 4)
        var first = Device(number: 1, subjects: 5, startingAt: Self.time, using: &one)
        var second = Device(number: 1, subjects: 5, startingAt: Self.time, using: &other)
        for change in Device.Change.allCases {
            let requests = first.requests(for: change, using: &one)
            let again = second.requests(for: change, using: &other)
            #expect(requests.map(\.path) == again.map(\.path))
        }
        #expect(first.registered == second.registered && first.tokens == second.tokens)
    }

    @Test func `registers everything at its launch`() {
        var random = SplitMix64(seed: 1)
        var device = Device(number: 1, subjects: 5, startingAt: Self.time, using: &random)
        let paths = device.requests(for: .launch, using: &random).map(\.path)
        #expect(paths == ["/controls", "/widgets/DoorWidgets", "/device"])
        #expect(device.registered.keys.sorted() == ["DoorWidgets", "GarageControls", "default"])
    }

    @Test func `is another installation after it was reinstalled`() {
        var random = SplitMix64(seed: 2)
        var device = Device(number: 1, subjects: 5, startingAt: Self.time, using: &random)
        let (installation, tokens) = (device.installation, device.tokens)
        let requests = device.requests(for: .reinstall, using: &random)
        #expect(requests.count == 3 && device.installation != installation)
        #expect(Set(tokens).isDisjoint(with: device.tokens))
        #expect(Set(device.formerTokens) == Set(tokens))
    }

    @Test func `has its installation removed when its user signs out`() {
        var random = SplitMix64(seed: 2)
        var device = Device(number: 1, subjects: 5, startingAt: Self.time, using: &random)
        let (installation, tokens) = (device.installation, device.tokens)
        let requests = device.requests(for: .forget, using: &random)
        #expect(requests.map(\.method) == ["DELETE", "PUT", "PUT", "PUT"])
        #expect(requests.map(\.installation) == [installation, nil, nil, nil])
        #expect(requests[0].path.isEmpty && device.installation != installation)
        #expect(Set(device.formerTokens) == Set(tokens))
    }

    @Test func `has no token twice and no more controls than it may`() {
        var random = SplitMix64(seed: 3)
        var device = Device(number: 1, subjects: 5, startingAt: Self.time, using: &random)
        for _ in 0..<500 {
            let change = Device.Change.allCases.randomElement(using: &random)!
            _ = device.requests(for: change, using: &random)
            #expect(device.controls.count <= Device.controlsMax)
            #expect(Set(device.tokens).isDisjoint(with: device.formerTokens))
        }
        #expect(Set(device.formerTokens).count == device.formerTokens.count)
    }

    @Test func `counts the pushes of the simulator's log`() {
        let log = """
            {"t":1000,"conn":1,"token":"aa","status":200}
            {"t":1000,"conn":1,"token":"bb","status":200}
            {"t":9000000000,"conn":1,"token":"bb","status":200}
            {"t":9000000000,"conn":1,"token":"cc","status":200}
            {"t":9000000000,"conn":1,"token":"dd","status":200}
            {"t":1000,"conn":1,"token":"aa","status":503}
            """
        var pushes = DeliveredPushes()
        pushes.count(log: Data(log.utf8), current: ["aa"], formers: ["bb": 2000, "cc": .max])
        #expect(pushes.expected == 3 && pushes.late == 1 && pushes.unknown == 1)
    }
}
