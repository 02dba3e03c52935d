// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Intake
internal import PushModel
internal import Testing

@Suite struct `A record's timestamp` {
    private let now = WallTime(milliseconds: 1_800_000_000_000)

    /// The last one is seconds since 1970, where milliseconds are wanted.
    @Test(arguments: [Int64.max, .max - 1, .min, -1, 0, 1_800_000_000])
    func `a record's timestamp that is none makes no event expire`(milliseconds: Int64) throws {
        var routing = RoutingTable()
        routing.add(credential: "c", apps: ["com.example.Home"], environments: [.production])
        var decoder = try EventDecoder(
            bindings: [.standard], routing: routing, settings: EventSettings())
        let key = Array("door-42".utf8)
        let expiresAt = try key.withUnsafeBytes { key in
            let record = EventRecord(
                binding: 0, key: key, value: nil,
                timestamp: WallTime(milliseconds: milliseconds))
            return try decoder.decode(record, now: now) { _ in nil }!.expiresAt
        }
        #expect(expiresAt > now)
        #expect(expiresAt <= now + .seconds(30 * 86_400))
    }
}
