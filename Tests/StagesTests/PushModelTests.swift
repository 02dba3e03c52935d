// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Foundation
internal import PushModel
internal import Testing

@Suite struct `Instants of the push model` {
    @Test(
        arguments: [
            ("1970-01-01T00:00:00.000Z", 0),
            ("1969-12-31T23:59:59.999Z", -1),
            ("1968-02-29T00:00:00.000Z", -58_060_800_000),
            ("2000-02-29T12:34:56.789Z", 951_827_696_789),
            ("2000-03-01T00:00:00.000Z", 951_868_800_000),
            ("2001-09-09T01:46:40.000Z", 1_000_000_000_000),
            ("2024-02-29T23:59:59.999Z", 1_709_251_199_999),
            ("2100-03-01T00:00:00.000Z", 4_107_542_400_000),
            ("2026-11-21T06:12:00.123Z", 1_795_241_520_123),
            ("9999-12-31T23:59:59.999Z", 253_402_300_799_999),
            ("0001-01-01T00:00:00.000Z", -62_135_596_800_000),
        ] as [(String, Int64)])
    func `known instants are read and written`(text: String, milliseconds: Int64) {
        #expect(WallTime(rfc3339: text)?.milliseconds == milliseconds)
        #expect(WallTime(milliseconds: milliseconds).rfc3339 == text)
    }

    @Test(
        arguments: [
            ("2026-11-21T06:12:00Z", 1_795_241_520_000),
            ("2026-11-21t06:12:00.1z", 1_795_241_520_100),
            ("2026-11-21T06:12:00.123456789Z", 1_795_241_520_123),
            ("2026-11-21T07:42:00+01:30", 1_795_241_520_000),
            ("2026-11-20T22:12:00.5-08:00", 1_795_241_520_500),
            ("2016-12-31T23:59:60Z", 1_483_228_800_000),
        ] as [(String, Int64)])
    func `other spellings of RFC 3339 are read`(text: String, milliseconds: Int64) {
        #expect(WallTime(rfc3339: text)?.milliseconds == milliseconds)
    }

    @Test(arguments: [
        "", "2026", "2026-11-21", "2026-11-21T06:12:00", "2026-11-21 06:12:00Z",
        "2026-13-01T00:00:00Z", "2026-00-01T00:00:00Z", "2026-01-32T00:00:00Z",
        "2026-01-00T00:00:00Z", "2026-02-29T00:00:00Z", "2100-02-29T00:00:00Z",
        "2026-04-31T00:00:00Z", "2026-01-01T24:00:00Z", "2026-01-01T00:60:00Z",
        "2026-01-01T00:00:61Z", "2026-01-01T00:00:00.Z", "2026-01-01T00:00:00+0100",
        "2026-01-01T00:00:00+24:00", "2026-01-01T00:00:00Zx", "26-01-01T00:00:00Z",
        "2026-1-01T00:00:00Z", "-026-01-01T00:00:00Z", "２０２６-01-01T00:00:00Z",
    ])
    func `any other text of an instant is refused`(text: String) {
        #expect(WallTime(rfc3339: text) == nil)
    }

    @Test func `a time too far away for the monotonic clock stays in the past or in the future`() {
        let now = Now(
            monotonic: MonotonicTime(nanoseconds: 5),
            wall: WallTime(milliseconds: 1_700_000_000_000))
        let yearOne = WallTime(milliseconds: -62_135_596_800_000)
        #expect(now.monotonic(at: yearOne) < now.monotonic)
        #expect(now.monotonic(at: WallTime(milliseconds: .min)) < now.monotonic)
        #expect(now.monotonic(at: WallTime(milliseconds: .max)) == .distantFuture)
        let earliest = now.monotonic(at: yearOne)
        #expect(earliest - now.monotonic < .zero && now.monotonic - earliest > .zero)
        #expect(now.wall(at: earliest) < now.wall)
        #expect(now.wall(at: .distantFuture) > now.wall)
    }

    @Test func `every third day of 400 years survives the round trip`() {
        var time = WallTime(rfc3339: "1900-01-01T13:14:15.016Z")!
        for _ in 0..<(146_097 / 3) {
            #expect(WallTime(rfc3339: time.rfc3339) == time)
            time = time + .seconds(3 * 86_400)
        }
        #expect(time.rfc3339 == "2300-01-01T13:14:15.016Z")
    }

    @Test func `monotonic deadlines saturate`() {
        #expect(MonotonicTime.distantFuture + .seconds(1) == .distantFuture)
        #expect(MonotonicTime(nanoseconds: 5) + .nanoseconds(7) == MonotonicTime(nanoseconds: 12))
        #expect(Duration.seconds(Int64.max).nanoseconds == .max)
        #expect(Duration.seconds(Int64.min).nanoseconds == .min)
        #expect(Duration.milliseconds(-1).nanoseconds == -1_000_000)
    }
}

@Suite struct `Hexadecimal text` {
    @Test func `every byte survives the round trip through hexadecimal, in either case`() {
        let bytes = Array(UInt8.min...UInt8.max)
        let text = Hexadecimal.encode(bytes)
        #expect(text.hasPrefix("000102") && text.hasSuffix("fdfeff"))
        #expect(Hexadecimal.decode(text) == bytes)
        #expect(Hexadecimal.decode(text.uppercased()) == bytes)
        let written = bytes.withUnsafeBufferPointer { bytes in
            String(unsafeUninitializedCapacity: 512) { output in
                Hexadecimal.encode(bytes, to: output.baseAddress!)
                return 512
            }
        }
        #expect(written == text)
    }

    @Test(arguments: ["", "a", "abc", "0g", "g0", " 00", "0x00", "é", "00\n", "@@", "``", "::"])
    func `any text but hexadecimal is refused`(text: String) {
        #expect(Hexadecimal.decode(text) == nil)
    }
}

@Suite struct `Stable hash` {
    private static func hash(_ text: String, seed: UInt64 = 0) -> StableHash.Value {
        var hash = StableHash(seed: seed)
        Array(text.utf8).withUnsafeBytes { hash.combine($0) }
        return hash.finish()
    }

    // These are what the function gives today. They must never change: apns-id is made of them, and
    // receivers recognise a duplicate by it across releases.
    @Test(
        arguments: [
            ("", 0, 0x48A9_D1DA_5D1D_B161, 0x64B5_DA96_C5F5_CD93),
            ("a", 0, 0x45E0_6F73_C893_EDAA, 0xA637_D884_090D_7917),
            ("door-42", 0, 0x6355_B7ED_22F5_27C8, 0x1272_ED80_E00B_ADFF),
            ("12345678", 0, 0xE974_FE08_6096_4D53, 0x107D_155F_D773_ED88),
            ("lamplighter.events/7/123456789", 0, 0xACE8_2C6D_97FD_763E, 0x6ACA_F99F_DB1A_5D02),
            ("door-42", 1, 0x5F27_0F8F_A720_8926, 0xC8B1_3C4E_15F6_9E1F),
        ] as [(String, UInt64, UInt64, UInt64)])
    func `the values of the stable hash are pinned`(
        text: String, seed: UInt64, high: UInt64, low: UInt64
    ) {
        let value = Self.hash(text, seed: seed)
        #expect(value.high == high, "0x\(String(value.high, radix: 16))")
        #expect(value.low == low, "0x\(String(value.low, radix: 16))")
    }

    @Test func `the values of the stable hash for every length are pinned`() {
        var all = StableHash()
        for length in 0...40 {
            var hash = StableHash()
            (0..<length).map { UInt8($0 * 5 + 1) }.withUnsafeBytes { hash.combine($0) }
            all.combine(hash.finish().low)
        }
        #expect(all.finish().low == 0x6DD2_2FBF_1CD2_85A1)
    }

    @Test func `nearby inputs have different stable hashes`() {
        var seen: Set<StableHash.Value> = []
        var inputs = 0
        for length in 0...40 {
            for byte in [UInt8](0...3) {
                var hash = StableHash()
                [UInt8](repeating: byte, count: length).withUnsafeBytes { hash.combine($0) }
                seen.insert(hash.finish())
                inputs += length == 0 && byte > 0 ? 0 : 1
            }
        }
        #expect(seen.count == inputs)
        #expect(Self.hash("a") != Self.hash("a", seed: 1))
    }

    @Test func `identifiers spread evenly over 64 partitions`() {
        var counts = [Int](repeating: 0, count: 64)
        for index in 0..<64_000 { counts[Int(Self.hash("door-\(index)").low & 63)] += 1 }
        // 1000 expected, standard deviation 31: six of them.
        #expect(counts.allSatisfy { abs($0 - 1000) < 190 })
    }
}

@Suite struct `apns-id` {
    @Test func `an apns-id's text is canonical, of version 8 and the RFC 9562 variant`() throws {
        let zero = APNSID(hash: .init(high: 0, low: 0))
        #expect(zero.text == "00000000-0000-8000-8000-000000000000")
        let ones = APNSID(hash: .init(high: .max, low: .max))
        #expect(ones.text == "ffffffff-ffff-8fff-bfff-ffffffffffff")
        let mixed = APNSID(hash: .init(high: 0x0123_4567_89AB_CDEF, low: 0xFEDC_BA98_7654_3210))
        #expect(mixed.text == "01234567-89ab-8def-bedc-ba9876543210")
        #expect(try #require(UUID(uuidString: mixed.text)).uuidString.lowercased() == mixed.text)
    }

    @Test func `an apns-id loses only six bits of the hash`() {
        let base = APNSID(hash: .init(high: 0, low: 0))
        let distinct =
            (0..<64).filter { APNSID(hash: .init(high: 1 << $0, low: 0)) != base }.count
            + (0..<64).filter { APNSID(hash: .init(high: 0, low: 1 << $0)) != base }.count
        #expect(distinct == 122)
    }
}

@Suite struct `Routing` {
    private static var table: RoutingTable {
        var table = RoutingTable()
        table.add(credential: "one", apps: ["a", "b"], environments: [.production, .development])
        table.add(credential: "two", apps: ["c"], environments: [.production])
        return table
    }

    @Test func `every route has one route and every route leads back`() throws {
        let table = Self.table
        #expect(table.apps == ["a", "b", "c"])
        #expect(table.pools.count == 6)
        #expect(table.routes.count == 5 * TokenClass.allCases.count)
        for (index, route) in table.routes.enumerated() {
            #expect(table[route.pool].isForBroadcasts == (route.tokenClass == .channel))
            #expect(table[route.pool].environment == route.environment)
            #expect(
                route.broadcastPath(in: table)
                    == (route.tokenClass == .channel
                        ? "/4/broadcasts/apps/" + table.name(of: route.app) : nil))
            let byRoute = table.route(
                environment: route.environment, app: route.app, tokenClass: route.tokenClass)
            #expect(byRoute == RouteID(rawValue: UInt16(index)))
            let byTopic = table.route(environment: route.environment, apnsTopic: route.apnsTopic)
            #expect(byTopic == RouteID(rawValue: UInt16(index)))
            #expect(table[route.pool].environment == route.environment)
        }
    }

    @Test func `the topics of routes are Apple's`() throws {
        let table = Self.table
        let app = try #require(table.app(named: "a"))
        func topic(_ tokenClass: TokenClass) throws -> String {
            table[
                try #require(
                    table.route(environment: .production, app: app, tokenClass: tokenClass))
            ].apnsTopic
        }
        #expect(try topic(.control) == "a.push-type.controls")
        #expect(try topic(.widget) == "a.push-type.widgets")
        #expect(try topic(.device) == "a")
        #expect(try topic(.voip) == "a.voip")
    }

    @Test func `credentials stay apart, and what is not served has no route`() throws {
        let table = Self.table
        let shared = try #require(table.app(named: "b"))
        let other = try #require(table.app(named: "c"))
        let one = table.route(environment: .production, app: shared, tokenClass: .control)
        let two = table.route(environment: .production, app: other, tokenClass: .control)
        #expect(table[table[try #require(one)].pool].credential == "one")
        #expect(table[table[try #require(two)].pool].credential == "two")
        #expect(table.route(environment: .development, app: other, tokenClass: .control) == nil)
        #expect(table.app(named: "d") == nil)
    }
}
