// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import Testing

@testable import RegistrarAccess

@Suite struct `CBOR of App Attest` {
    private static func read(_ hexadecimal: String) throws -> CBOR? {
        CBOR(try #require(Hexadecimal.decode(hexadecimal)))
    }

    /// Of RFC 8949, appendix A.
    private static let examples: [(String, CBOR)] = [
        ("00", .unsigned(0)), ("17", .unsigned(23)), ("1818", .unsigned(24)),
        ("18ff", .unsigned(255)), ("190100", .unsigned(256)), ("1903e8", .unsigned(1000)),
        ("1a000f4240", .unsigned(1_000_000)), ("1b000000e8d4a51000", .unsigned(1_000_000_000_000)),
        ("1bffffffffffffffff", .unsigned(.max)), ("20", .negative(0)), ("3863", .negative(99)),
        ("3903e7", .negative(999)), ("40", .bytes([])), ("4401020304", .bytes([1, 2, 3, 4])),
        ("60", .text("")), ("6449455446", .text("IETF")), ("62c3bc", .text("\u{FC}")),
        ("64f0908591", .text("\u{10151}")), ("80", .array([])),
        ("83010203", .array([.unsigned(1), .unsigned(2), .unsigned(3)])),
        (
            "8301820203820405",
            .array([
                .unsigned(1), .array([.unsigned(2), .unsigned(3)]),
                .array([.unsigned(4), .unsigned(5)]),
            ])
        ),
        ("a0", .map([:])),
        (
            "a26161016162820203",
            .map(["a": .unsigned(1), "b": .array([.unsigned(2), .unsigned(3)])])
        ),
    ]

    @Test(arguments: examples)
    func `the examples of RFC 8949 are read`(hexadecimal: String, value: CBOR) throws {
        #expect(try Self.read(hexadecimal) == value)
    }

    @Test(arguments: [
        // Indefinite lengths.
        "5f42010243030405ff", "7f657374726561646d696e67ff", "9fff", "bfff",
        // Tags, floats, simple values, reserved heads.
        "c11a514b67b0", "f97e00", "fb3ff199999999999a", "f4", "f5", "f6", "f7", "f818", "ff",
        "1c", "1d", "1e", "1f", "fc",
        // Not in the shortest form.
        "1817", "1900ff", "1a0000ffff", "1b00000000ffffffff", "580101", "7800", "980100", "b800",
        // Keys that come twice, or are no texts.
        "a2616101616102", "a10102", "a1410102",
        // Text that is not UTF-8.
        "61ff", "62c328", "63eda080",
        // Cut off, or followed by something.
        "", "18", "19ff", "1a0000", "1bffffffffffffff", "42", "4201", "6261", "81", "8201",
        "a1", "a16161", "0000", "a000", "5bffffffffffffffff", "9bffffffffffffffff",
        "bbffffffffffffffff", "5b7fffffffffffffff01",
    ])
    func `what is not plain CBOR is refused`(hexadecimal: String) throws {
        if hexadecimal.isEmpty {
            #expect(CBOR([]) == nil)
        } else {
            #expect(try Self.read(hexadecimal) == nil)
        }
    }

    @Test func `depth, number and size of values have bounds`() throws {
        #expect(try Self.read("81818180") != nil)
        #expect(try Self.read("8181818180") == nil)
        #expect(try Self.read("a16161a16161a16161a0") != nil)
        #expect(try Self.read("a16161a16161a16161a16161a0") == nil)
        let many = [UInt8(0x98), UInt8(CBOR.valuesMax - 1)]
        #expect(CBOR(many + [UInt8](repeating: 0, count: CBOR.valuesMax - 1)) != nil)
        let tooMany = [UInt8(0x98), UInt8(CBOR.valuesMax)]
        #expect(CBOR(tooMany + [UInt8](repeating: 0, count: CBOR.valuesMax)) == nil)
        let most = CBOR.bytesMax - 3
        let head = [0x59, UInt8(most >> 8), UInt8(most & 0xFF)]
        #expect(CBOR(head + [UInt8](repeating: 0, count: most)) != nil)
        let longer = [0x59, UInt8((most + 1) >> 8), UInt8((most + 1) & 0xFF)]
        #expect(CBOR(longer + [UInt8](repeating: 0, count: most + 1)) == nil)
    }

    @Test func `what the tests write is read`() {
        let value = CBOR.map([
            "fmt": .text("apple-appattest"),
            "list": .array([.bytes([UInt8](repeating: 7, count: 300)), .unsigned(70_000)]),
        ])
        #expect(CBOR(CBORWriter.encode(value)) == value)
    }
}
