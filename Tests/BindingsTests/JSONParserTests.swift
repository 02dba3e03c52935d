// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Foundation
internal import Simdjson
internal import Testing

@Suite struct `JSON parser` {
    @Test func `JSON values of each kind are read`() throws {
        try parsing(#"{"s":"a\u00e9\n","i":-5,"u":18446744073709551615,"d":1.5,"t":true,"n":null}"#)
        {
            let object = try #require($0.object)
            #expect(object["s"]?.string.map(text) == "aé\n")
            #expect(object["i"]?.integer == -5)
            #expect(object["i"]?.double == -5)
            #expect(object["u"]?.integer == nil)
            #expect(object["u"]?.double == 18_446_744_073_709_551_616)
            #expect(object["d"]?.double == 1.5)
            #expect(object["d"]?.integer == nil)
            #expect(object["t"]?.bool == true)
            #expect(object["n"]?.isNull == true)
            #expect(object["missing"] == nil)
            #expect(object["s"]?.integer == nil)
            #expect(object["i"]?.string == nil)
        }
    }

    @Test func `members and elements come in their order, nested ones skipped whole`() throws {
        try parsing(#"{"a":{"x":[1,{"y":2}]},"b":[[],{},"z"],"c":3}"#) {
            let object = try #require($0.object)
            #expect(object.map { text($0.key) } == ["a", "b", "c"])
            #expect(try #require(object["b"]?.array).map(\.kind) == [.array, .object, .string])
            #expect(try #require(object["b"]?.array?.first { _ in true }?.array).isEmpty)
            #expect(object["c"]?.integer == 3)
        }
    }

    @Test func `the last of duplicate members wins, and iteration shows them all`() throws {
        try parsing(#"{"a":1,"b":2,"a":3}"#) {
            let object = try #require($0.object)
            #expect(object["a"]?.integer == 3)
            #expect(object.map { text($0.key) } == ["a", "b", "a"])
            #expect($0[JSONPointer("/a")!]?.integer == 3)
        }
    }

    @Test func `a scalar may be the whole document`() throws {
        try parsing("7") { #expect($0.integer == 7) }
        try parsing(#""""#) { #expect($0.string?.count == 0) }
    }

    @Test(arguments: [
        "", " ", "{", #"{"a"}"#, #"{"a":1,}"#, "[1,]", "{'a':1}", "nul", "01", "1.", #""\x""#,
        "\"\n\"", "{} {}", "\u{FEFF}x", "\u{FEFF}", "018446744073709551616",
        "+18446744073709551616",
        "18446744073709551616x", "18446744073709551616 1", "1e999.5", "1e", "-", "--1e999",
        "[18446744073709551616,]", #""\ud83"#, #""\ud83d"#, #""\ud8zz""#, #"{"\ud83d":1,}"#,
        #""\u12""#, "0x18446744073709551616", "1e999e1", "Infinity", "NaN",
    ])
    func `what is not JSON is refused`(document: String) {
        #expect(refusal(Array(document.utf8)) == .invalid)
    }

    @Test(
        arguments: [
            [0x22, 0xFF, 0x22], [0x22, 0xC0, 0xAF, 0x22], [0x22, 0xED, 0xA0, 0x80, 0x22],
            [0x22, 0xE2, 0x82, 0x22], [0x22, 0xF5, 0x80, 0x80, 0x80, 0x22],
        ] as [[UInt8]])
    func `what is not UTF-8 is refused`(document: [UInt8]) {
        #expect(refusal(document) == .invalidUTF8)
    }

    /// Numbers in JSON that simdjson has no type for, their neighbours, and others.
    private static let numbers = [
        "0", "-0.0", "1", "-1", "9223372036854775807", "9223372036854775808",
        "-9223372036854775808",
        "-9223372036854775809", "18446744073709551615", "18446744073709551616",
        "18446744073709551620", "-18446744073709551616", "99999999999999999999",
        "100000000000000000000", "12345678901234567890123456789012345678",
        "1\(String(repeating: "0", count: 307))", "1\(String(repeating: "0", count: 308))",
        "-9\(String(repeating: "9", count: 400))", "100.0", "1E2", "1e+2", "4.20e1", "1e400",
        "-1e400", "9e308", "1.7976931348623157e308", "1.7976931348623159e308", "0e999", "1e-400",
        "0.1234567890123456789012345678901234567890", "123456789012345678901.5e300",
        "0.00001e320",
    ]

    @Test(arguments: numbers)
    func `a number of any size is kept as it is written`(number: String) throws {
        for document in [number, "[\(number)]", #"{"a":"1,\"2","b":[\#(number) ,2.50],"c":-1}"#] {
            try parsing(document) { value in
                var output: [UInt8] = []
                #expect(value.minify(into: &output, bytesMax: 2000))
                let expected = document.filter { $0 != " " }
                #expect(String(decoding: output, as: UTF8.self) == expected)
                let found = value[JSONPointer("/b/0")!] ?? value[JSONPointer("/0")!] ?? value
                #expect(found.kind == .number)
                #expect(found.double!.isFinite)
                let isWhole = number.allSatisfy { $0.isNumber || $0 == "-" }
                #expect(found.integerText == (isWhole ? number : nil))
                #expect(found.integer == Int64(number))
                #expect(found.wholeNumber == (isWhole ? Int128(number) : nil))
                #expect(value[JSONPointer("/c")!]?.integer == (value.object == nil ? nil : -1))
            }
        }
    }

    @Test(arguments: [
        (#"\ud83d"#, true), (#"\uD83D"#, true), (#"\ude00"#, true), (#"\ud83dx"#, true),
        (#"\ud83d\ud83d\ude00"#, true), (#"\ude00\ud83d"#, true), (#"a\\\ud83d\n"#, true),
        (#"\ud83d\\ude00"#, true), (#"\udfff\"\""#, true), (#"é\ud800é"#, true),
        (#"\ud83d\ude00"#, false), (#"\\ud83d"#, false), (#"\ufffd"#, false), ("\u{FFFD}", false),
        (#"\u0000"#, false),
    ])
    func `a lone surrogate is U+FFFD in its text, and numbers are passed on as they are written`(
        written: String, isLone: Bool
    ) throws {
        let document = #"{"n":1.50,"k\#(written)":["\#(written)",1e999],"z":"z"}"#
        try parsing(document) { value in
            let string = try #require(value.object?.first { text($0.key).hasPrefix("k") }?.value)
            let element = try #require(string[JSONPointer("/0")!])
            #expect(element.hasLoneSurrogate == isLone)
            #expect(value[JSONPointer("/z")!]?.hasLoneSurrogate == false)
            var output: [UInt8] = []
            #expect(value.minify(into: &output, bytesMax: 1000))
            let passedOn = String(decoding: output, as: UTF8.self)
            #expect(passedOn.hasPrefix(#"{"n":1.50,"#) && passedOn.contains(",1e999]"))
            if isLone {
                #expect(passedOn.contains("\u{FFFD}"))
                // It is read again with nothing to mend.
                try parsing(passedOn) { again in
                    let found = again.object?.first { text($0.key).hasPrefix("k") }?.value
                    #expect(
                        found?[JSONPointer("/0")!]?.string.map(text) == element.string.map(text))
                }
            }
        }
    }

    @Test func `a byte order mark is skipped`() throws {
        try parsing("\u{FEFF}{\"a\":1.50}") { value in
            var output: [UInt8] = []
            #expect(value.minify(into: &output, bytesMax: 100))
            #expect(String(decoding: output, as: UTF8.self) == #"{"a":1.50}"#)
        }
    }

    @Test func `the depth and size of JSON are bounded`() {
        func nested(_ depth: Int) -> [UInt8] {
            Array(
                (String(repeating: "[", count: depth) + String(repeating: "]", count: depth)).utf8)
        }
        #expect(refusal(nested(15), depthMax: 16) == nil)
        #expect(refusal(nested(17), depthMax: 16) == .tooDeep)
        #expect(refusal(Array(repeating: 0x20, count: 99) + [0x31], bytesMax: 100) == nil)
        #expect(refusal(Array(repeating: 0x20, count: 100) + [0x31], bytesMax: 100) == .tooLarge)
    }

    @Test func `the JSON parser goes on after a refusal, and grows`() throws {
        var parser = JSONParser()
        for count in [1, 5000, 3, 200_000, 70_000] {
            #expect(throws: JSONError.self) {
                _ = try Array("[".utf8).withUnsafeBytes { try parser.parse($0).kind }
            }
            let document = Array(("[" + String(repeating: "1,", count: count) + "2]").utf8)
            let elements = try document.withUnsafeBytes { bytes in
                try parser.parse(bytes).array!.reduce(0) { sum, _ in sum + 1 }
            }
            #expect(elements == count + 1)
        }
    }

    @Test(arguments: [
        (
            #" { "a" : [ 1 , -2.50 , 1e2 ] , "b" : { } , "c" : [ ] } "#,
            #"{"a":[1,-2.50,1e2],"b":{},"c":[]}"#
        ),
        (#"{"e":"\"\\\/\b\f\n\r\t\u0001\u00e9😀"}"#, #"{"e":"\"\\/\b\f\n\r\t\u0001é😀"}"#),
        (
            #"[true,false,null,9223372036854775807,18446744073709551615]"#,
            #"[true,false,null,9223372036854775807,18446744073709551615]"#
        ),
        (#"{"":"","a\u0000b":"\u0000"}"#, #"{"":"","a\u0000b":"\u0000"}"#),
    ])
    func `minified JSON says the same in fewer bytes`(document: String, expected: String) throws {
        try parsing(document) {
            var output: [UInt8] = []
            #expect($0.minify(into: &output, bytesMax: 1000))
            #expect(String(decoding: output, as: UTF8.self) == expected)
            let exact = output.count
            var limited: [UInt8] = Array("x".utf8)
            #expect($0.minify(into: &limited, bytesMax: exact + 1))
            limited = Array("x".utf8)
            #expect(!$0.minify(into: &limited, bytesMax: exact))
            #expect(limited == Array("x".utf8))
        }
    }

    @Test func `pointers lead where RFC 6901 says`() throws {
        let document = #"{"foo":["bar","baz"],"":0,"a/b":1,"m~n":8,"o":{"01":{"x":7}}}"#
        try parsing(document) { value in
            func at(_ text: String) -> JSONValue? { value[JSONPointer(text)!] }
            #expect(at("")?.kind == .object)
            #expect(at("/foo/1")?.string.map(text) == "baz")
            #expect(at("/foo/2") == nil)
            #expect(at("/foo/01") == nil)
            #expect(at("/foo/-") == nil)
            #expect(at("/foo/9999999999999999999999") == nil)
            #expect(at("/")?.integer == 0)
            #expect(at("/a~1b")?.integer == 1)
            #expect(at("/m~0n")?.integer == 8)
            #expect(at("/o/01/x")?.integer == 7)
            #expect(at("/foo/bar") == nil)
            #expect(at("/o/01/x/y") == nil)
        }
        for text in ["foo", "/~", "/~2", "/a~"] { #expect(JSONPointer(text) == nil) }
    }

    /// Foundation's parser is the oracle. Documents are damaged at random, so most are refused.
    @Test(arguments: [1, 2, 3] as [UInt64])
    func `damaged documents are read or refused, as another parser does`(seed: UInt64) throws {
        var random = SeededGenerator(state: seed)
        let sample =
            #"{"v":1,"subjects":["a\n","\u00e9"],"n":[1,-2,3.25,true,false,null],"o":{"p":{}}}"#
        var parser = JSONParser()
        var agreements = 0
        for _ in 0..<2000 {
            var document = Array(sample.utf8)
            for _ in 0..<Int.random(in: 0...2, using: &random) {
                document[Int.random(in: 0..<document.count, using: &random)] =
                    UInt8.random(in: 0...127, using: &random)
            }
            var output: [UInt8] = []
            let read = document.withUnsafeBytes { bytes in
                guard let value = try? parser.parse(bytes) else { return false }
                return value.minify(into: &output, bytesMax: 1000)
            }
            let oracle = try? JSONSerialization.jsonObject(with: Data(document)) as? NSDictionary
            guard read, let oracle else { continue }
            let ours = try JSONSerialization.jsonObject(with: Data(output)) as? NSDictionary
            #expect(ours == oracle, "seed \(seed): \(String(decoding: document, as: UTF8.self))")
            agreements += 1
        }
        #expect(agreements > 500)
    }
}

private func parsing(_ document: String, _ body: (JSONValue) throws -> Void) throws {
    var parser = JSONParser()
    try Array(document.utf8).withUnsafeBytes { try body(try parser.parse($0)) }
}

private func refusal(
    _ document: [UInt8], bytesMax: Int = 1 << 20, depthMax: Int = 64
) -> JSONError.Code? {
    var parser = JSONParser(bytesMax: bytesMax, depthMax: depthMax)
    return document.withUnsafeBytes { bytes in
        do throws(JSONError) {
            _ = try parser.parse(bytes)
            return nil
        } catch {
            return error.code
        }
    }
}

private func text(_ bytes: UnsafeRawBufferPointer) -> String {
    String(decoding: bytes, as: UTF8.self)
}

/// SplitMix64: the same numbers for the same seed on every machine.
private struct SeededGenerator: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var word = state
        word = (word ^ word >> 30) &* 0xBF58_476D_1CE4_E5B9
        word = (word ^ word >> 27) &* 0x94D0_49BB_1331_11EB
        return word ^ word >> 31
    }
}
