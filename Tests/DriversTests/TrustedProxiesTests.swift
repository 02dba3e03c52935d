// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Testing

@testable import HTTPListener

@Suite struct `Trusted proxies` {
    @Test(arguments: [
        ("10.0.0.0/8", "10.255.0.1", true), ("10.0.0.0/8", "11.0.0.1", false),
        ("192.0.2.7", "192.0.2.7", true), ("192.0.2.7", "192.0.2.8", false),
        ("192.0.2.128/25", "192.0.2.127", false), ("192.0.2.128/25", "192.0.2.128", true),
        ("0.0.0.0/0", "203.0.113.9", true), ("0.0.0.0/0", "2001:db8::1", false),
        ("fd00::/8", "fd12:3456::1", true), ("fd00::/8", "fe00::1", false),
        ("2001:db8::1", "2001:0DB8:0:0::0001", true), ("10.0.0.0/8", "::ffff:10.1.2.3", true),
    ])
    func `a range has these addresses`(range: String, address: String, isIn: Bool) throws {
        let bytes = try #require(AddressRange.bytes(of: address))
        #expect(try #require(AddressRange(range)).contains(bytes) == isIn)
    }

    @Test(arguments: [
        "", "10", "10.0.0/8", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/", "10.0.0.0/8/8",
        "fd00::/129",
        "proxy.example.com", "10.0.0.0 /8", "*",
    ])
    func `what is no range is none`(text: String) { #expect(AddressRange(text) == nil) }

    private static let proxies = TrustedProxies(
        ["10.0.0.0/8", "fd00::/8"].compactMap { AddressRange($0) })

    @Test(arguments: [
        // A client's own words count for nothing.
        ("203.0.113.1", ["198.51.100.1"], "203.0.113.1"),
        ("10.0.0.1", ["198.51.100.1"], "198.51.100.1"),
        ("10.0.0.1", ["192.0.2.66, 198.51.100.1"], "198.51.100.1"),
        ("10.0.0.1", ["192.0.2.66", "198.51.100.1,\t10.0.0.2"], "198.51.100.1"),
        ("fd00::1", ["2001:db8::7"], "2001:db8::7"),
        // Nobody but proxies, or nobody who can be told.
        ("10.0.0.1", [], "10.0.0.1"), ("10.0.0.1", ["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
        ("10.0.0.1", ["198.51.100.1, unknown"], "10.0.0.1"),
        ("10.0.0.1", ["198.51.100.1, unknown, 10.0.0.2"], "10.0.0.2"),
        ("10.0.0.1", ["198.51.100.1:443"], "10.0.0.1"), ("10.0.0.1", [", ,"], "10.0.0.1"),
    ])
    func `a request comes from the last address that is no proxy's`(
        peer: String, forwardedFor: [String], client: String
    ) {
        #expect(Self.proxies.client(of: peer, forwardedFor: forwardedFor) == client)
    }

    @Test func `of endless hops the last few are looked at`() {
        let hops = Array(repeating: "10.0.0.9", count: 100_000).joined(separator: ",")
        #expect(
            Self.proxies.client(of: "10.0.0.1", forwardedFor: ["203.0.113.1", hops]) == "10.0.0.9")
    }

    @Test func `without any nobody is believed`() {
        #expect(
            TrustedProxies().client(of: "10.0.0.1", forwardedFor: ["198.51.100.1"]) == "10.0.0.1")
    }
}
