// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import FleetKit
import Foundation
import Testing

@Suite struct `A free port` {
    @Test func `is none that the system gives to whoever asks for any`() throws {
        let range = try String(
            contentsOfFile: "/proc/sys/net/ipv4/ip_local_port_range", encoding: .utf8)
        let first = try #require(Int(range.split(whereSeparator: \.isWhitespace)[0]))
        // A machine may be set up to give others than by default.
        guard first >= 32_768 else { return }
        for _ in 0..<20 { #expect(try ProcessFleet.freePort() < first) }
    }
}
