// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Importing
internal import Testing

@Suite struct `A hostile import` {
    private static let csv = ImportSample(
        format: .csv, columns: [.token: "t", .lastSeen: "seen", .installation: "i", .dead: "dead"],
        templates: ["{s}"])

    private static func row(_ fields: String) throws -> String {
        let rows = try csv.read("t,seen,i,dead,s\n\(fields)\nab,,,,next\n")
        #expect(rows.last?.hasSuffix("- device ab - next live") == true)
        return rows[0]
    }

    @Test(arguments: [
        ("ab,,,", "2 bad: it has 4 fields, and there are 5"),
        ("ab,,,,x,y", "2 bad: it has 6 fields, and there are 5"),
        ("abc,,,,x", "2 bad: token is not an even number of hexadecimal digits"),
        ("zz,,,,x", "2 bad: token is not an even number of hexadecimal digits"),
        (
            "ab,yesterday,,,x",
            "2 bad: lastSeen is no instant such as 2026-11-21T06:12:00Z, nor seconds since 1970"
        ),
        ("ab,2031-01-01T00:00:00Z,,,x", "2 bad: lastSeen is not between 2001 and now"),
        ("ab,12,,,x", "2 bad: lastSeen is not between 2001 and now"),
        (
            "ab,-1e300,,,x",
            "2 bad: lastSeen is no instant such as 2026-11-21T06:12:00Z, nor seconds since 1970"
        ),
        (
            "ab,nan,,,x",
            "2 bad: lastSeen is no instant such as 2026-11-21T06:12:00Z, nor seconds since 1970"
        ),
        ("ab,,a/b,,x", "2 bad: installation is not 1 to 128 of A-Z a-z 0-9 . _ ~ -"),
        ("ab,,,perhaps,x", "2 bad: dead is neither yes nor no"),
        ("ab,,,,x\"y", "2 bad: field 5 has a quote and is not quoted"),
        ("ab,,,,\"x\"y", "2 bad: field 5 goes on behind its closing quote"),
        (",,,,x", "2 without a token"), ("ab,,,,", "2 without a subject"),
    ])
    func `a row that is wrong is told, and the next one is read`(fields: String, told: String)
        throws
    {
        // A quote alone opens a record that the next line closes.
        guard !fields.hasSuffix(",x\"y") else {
            let rows = try Self.csv.read("t,seen,i,dead,s\n\(fields)")
            return #expect(rows == ["2 bad: a quote is opened that nothing closes"])
        }
        #expect(try Self.row(fields) == told)
    }

    @Test func `what is long is told, and its end is found`() throws {
        let long = String(repeating: "x", count: RecordSplitter.recordBytesMax + 1)
        #expect(
            try Self.row("ab,,,,\(long)") == "2 bad: it is longer than 1048576 bytes")
        #expect(try Self.row("ab,,,,\"\(long)") == "2 bad: it is longer than 1048576 bytes")
        #expect(
            try Self.row("ab,,,,\(String(repeating: "é", count: 129))")
                == "2 bad: a subject is longer than 256 bytes")
        #expect(
            try Self.row(String(repeating: "ab", count: 513) + ",,,,x")
                == "2 bad: token is longer than 512 bytes")
    }

    @Test func `bytes that are not UTF-8 are told`() throws {
        let bytes = Array("t,seen,i,dead,s\nab,,,,".utf8) + [0xFF, 0x0A] + Array("ab,,,,x".utf8)
        let rows = try Self.csv.read(bytes)
        #expect(rows.first == "2 bad: field 5 is not UTF-8" && rows.count == 2)
    }

    @Test func `a header without a column that is wanted ends the reading`() throws {
        #expect {
            try Self.csv.read("token,seen,i,dead,s\n")
        } throws: {
            ($0 as? SourceProblem)?.reason == "it has no column 't', but token, seen, i, dead, s"
        }
        // A row in its place may have a token, which is not shown.
        let row = "7,\(String(repeating: "ab", count: 32)),2026-10-01\n"
        #expect {
            try Self.csv.read(row)
        } throws: {
            ($0 as? SourceProblem)?.reason
                == "its first line has no names of columns: say them with --fields"
        }
        #expect(throws: SourceProblem.self) { try Self.csv.read("t,t,seen,i,dead,s\n") }
        #expect(throws: SourceProblem.self) { try Self.csv.read("\"t,seen\"x\n") }
        #expect(try Self.csv.read("").isEmpty)
    }

    @Test(arguments: [
        ("{\"t\":\"ab\",\"s\":{}}", "1 bad: an object stands where a text is wanted"),
        ("[1]", "1 bad: it is not a JSON object"), ("{\"t\":", "1 bad: it is not JSON"),
        ("{\"t\":{\"a\":1},\"s\":\"x\"}", "1 bad: an object stands where a text is wanted"),
        ("\u{0}", "1 bad: it is not JSON"),
        (String(repeating: "[", count: 100_000), "1 bad: it is not JSON"),
    ])
    func `JSON that is wrong is told, and the next line is read`(line: String, told: String) throws
    {
        let sample = ImportSample(format: .ndjson, columns: [.token: "t"], templates: ["{s}"])
        let rows = try sample.read("\(line)\n{\"t\":\"ab\",\"s\":\"x\"}\n")
        #expect(rows.count == 2 && rows[0].hasPrefix(told))
        #expect(rows[1].hasSuffix("x live"))
    }

    @Test(arguments: [
        ("{\"Endpoints\":[{\"a\":1}}]", "1 bad: its brackets do not match"),
        ("x", "1 bad: it is not a JSON object"),
        (String(repeating: "[", count: 65), "1 bad: it is nested more than 64 deep"),
        ("{\"Endpoints\":[{\"a\":", "1 bad: the input ends within a JSON document"),
    ])
    func `a listing that is wrong is told`(text: String, told: String) throws {
        let sample = ImportSample(format: .sns, templates: ["x"])
        let rows = try sample.read("\(text)\n\n")
        #expect(rows.last == told || rows.contains(told), "\(rows)")
    }

    @Test func `an object of a listing that is long is told`() throws {
        let sample = ImportSample(format: .sns, templates: ["x"])
        let long = String(repeating: "y", count: RecordSplitter.recordBytesMax)
        let rows = try sample.read("{\"Endpoints\":[{\"a\":\"\(long)\"}]}\n{}")
        #expect(rows.first == "1 bad: an object is longer than 1048576 bytes")
        #expect(rows.last == "2 of another platform")
    }

    @Test func `a template makes no more subjects than a registration may have`() throws {
        let sample = ImportSample(
            format: .ndjson, columns: [.token: "t"], templates: ["{a}-{b}"])
        let list = "[" + (0..<40).map { "\"\($0)\"" }.joined(separator: ",") + "]"
        #expect(
            try sample.read("{\"t\":\"ab\",\"a\":\(list),\"b\":\(list)}")
                == ["1 bad: it makes more than 1000 subjects"])
    }

    @Test(arguments: ["", "{", "a}", "{}", "a{b", "x{y}}"])
    func `a template that is wrong is refused`(template: String) {
        #expect(throws: SourceProblem.self) { try SubjectTemplate(template) }
    }
}
