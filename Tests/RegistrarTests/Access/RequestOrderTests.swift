// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import Testing

@testable import RegistrarAccess

@Suite struct `The order of requests` {
    private static let start = AccessFixture.now

    /// An order that an expectation may change.
    private final class Order {
        private var order: RequestOrder

        init(_ entriesMax: Int = 1000) {
            order = RequestOrder(window: .seconds(600), entriesMax: entriesMax)
        }

        func accepts(keyID: [UInt8], path: String, counter: UInt32, now: WallTime) -> Bool {
            order.accepts(keyID: keyID, path: path, counter: counter, now: now)
        }
    }

    @Test func `an earlier request is refused where paths are equal or contain one another`() {
        for (path, isRelated) in [
            ("/controls/Garage", true), ("/controls", true), ("", true),
            ("/controls/Garage/x", true), ("/controls/Garag", false), ("/controls/GarageX", false),
            ("/widgets", false), ("/control", false),
        ] {
            let order = Order()
            let now = Self.start
            #expect(order.accepts(keyID: [1], path: "/controls/Garage", counter: 5, now: now))
            #expect(order.accepts(keyID: [1], path: path, counter: 4, now: now) == !isRelated)
            #expect(order.accepts(keyID: [1], path: path, counter: 5, now: now))
            #expect(order.accepts(keyID: [2], path: path, counter: 1, now: now))
        }
    }

    @Test func `a request is remembered for as long as its date is accepted`() {
        // The clock's turn may come at any moment of a window.
        for age in stride(from: Int64(0), through: 600, by: 60) {
            let order = Order()
            _ = order.accepts(keyID: [9], path: "/x", counter: 1, now: Self.start)
            let then = Self.start + .seconds(age)
            #expect(order.accepts(keyID: [1], path: "/x", counter: 5, now: then))
            for later in [0, 300, 599] as [Int64] {
                let now = then + .seconds(later)
                #expect(!order.accepts(keyID: [1], path: "/x", counter: 4, now: now))
            }
            let end = then + .seconds(1801)
            #expect(order.accepts(keyID: [1], path: "/x", counter: 4, now: end))
        }
    }

    @Test func `what is remembered is bounded, of one key and of all`() {
        let order = Order(100)
        for number in 0..<UInt32(RequestOrder.pathsMax) {
            #expect(
                order.accepts(keyID: [1], path: "/p\(number)", counter: 10, now: Self.start))
        }
        #expect(order.accepts(keyID: [1], path: "/q", counter: 3, now: Self.start))
        // Now one order holds for all of the key's paths.
        #expect(!order.accepts(keyID: [1], path: "/r", counter: 9, now: Self.start))
        #expect(order.accepts(keyID: [1], path: "/r", counter: 10, now: Self.start))
        // Others push it out after twice the bound.
        for number in 0..<UInt16(200) {
            let keyID = number.bigEndianBytes
            #expect(order.accepts(keyID: keyID, path: "/p", counter: 1, now: Self.start))
        }
        #expect(order.accepts(keyID: [1], path: "/r", counter: 1, now: Self.start))
    }
}
