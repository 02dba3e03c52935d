// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Importing
internal import PushModel
internal import Testing

/// What reading a file as another sender wrote it gives.
struct ImportSample {
    var format: SourceFormat
    var columns: [RowField: String] = [:]
    var templates: [String] = ["user-{id}"]
    var names: [String]?
    var joinColumn: String?
    var joined: [String: [String]] = [:]

    static let now = WallTime(rfc3339: "2026-11-29T12:00:00Z")!

    /// One line for each row: its line, then what it says, why it is left out, or what is wrong with it.
    ///
    /// - Parameter pieceBytes: how many bytes come at once.
    func read(_ text: String, pieceBytes: Int = .max) throws -> [String] {
        try read(Array(text.utf8), pieceBytes: pieceBytes)
    }

    func read(_ bytes: [UInt8], pieceBytes: Int = .max) throws -> [String] {
        var mapper = try RowMapper(
            format, columns: columns, templates: try templates.map { try SubjectTemplate($0) },
            joinColumn: joinColumn)
        mapper.app = "com.example.Home"
        mapper.environment = .production
        var reader = try RowReader(
            format, wanted: mapper.wanted, optional: mapper.optional, names: names)
        var found: [String] = []
        let body: RowReader.Body = { line, values in
            do {
                let row = try mapper.row(values.get(), line: line, now: Self.now) {
                    joined[$0] ?? []
                }
                found.append("\(line) \(Self.text(row))")
            } catch let problem as RowProblem {
                found.append("\(line) bad: \(problem.reason)")
            }
        }
        var rest = bytes[...]
        while !rest.isEmpty {
            try Array(rest.prefix(pieceBytes)).withUnsafeBytes { try reader.take($0, body) }
            rest = rest.dropFirst(pieceBytes)
        }
        try reader.finish(body)
        return found
    }

    private static func text(_ mapped: MappedRow) -> String {
        switch mapped {
        case .leftOut(let reason): return reason.words
        case .row(let row):
            let words = [
                row.environment.name, row.app, row.installation ?? "-", row.tokenClass.name,
                Hexadecimal.encode(row.token), row.lastSeen?.rfc3339 ?? "-",
                row.subjects.joined(separator: ","), "\(row.standing)",
            ]
            return words.joined(separator: " ")
        }
    }
}

@Suite struct `Import formats` {
    private static let home = "production com.example.Home"

    @Test func `CSV is read by the names of its header`() throws {
        let sample = ImportSample(
            format: .csv,
            columns: [
                .token: "push", .installation: "device", .lastSeen: "seen", .environment: "env",
                .optedOut: "muted",
            ])
        let rows = try sample.read(
            """
            id,device,push,seen,env,muted\r
            7,6F1C,00fc13,2026-11-21T06:12:00Z,production,f\r
            "8","6F1D","00FC14",1763705520,sandbox,\r

            9,,\\x00fc15,2026-11-21 06:12:00.5+00,production,t
            """)
        #expect(
            rows == [
                "2 \(Self.home) 6F1C device 00fc13 2026-11-21T06:12:00.000Z user-7 live",
                "3 development com.example.Home 6F1D device 00fc14 2025-11-21T06:12:00.000Z user-8 live",
                "5 \(Self.home) - device 00fc15 2026-11-21T06:12:00.500Z  optedOut",
            ])
    }

    @Test func `a field of CSV may have delimiters, quotes and line ends`() throws {
        let sample = ImportSample(format: .csv, columns: [.token: "t"], templates: ["{s}"])
        let rows = try sample.read("t,s\nab,\"a,b\"\ncd,\"say \"\"x\"\"\nnow\"\nef,z\n")
        #expect(
            rows.map { $0.split(separator: " ", maxSplits: 7).last } == [
                "a,b live", "say \"x\"\nnow live", "z live",
            ])
        #expect(rows.map { $0.prefix(1) } == ["2", "3", "5"])
    }

    @Test func `NDJSON is read by members and pointers, and a list makes several subjects`() throws
    {
        let sample = ImportSample(
            format: .ndjson, columns: [.token: "/push/token", .lastSeen: "seen"],
            templates: ["door-{doors}", "user-{id}"])
        let rows = try sample.read(
            #"""
            {"id":7,"push":{"token":"00fc13"},"seen":1763705520123,"doors":["a","b"]}
            {"id":null,"push":{"token":"00fc14"},"doors":"c"}
            {"id":"9","push":{},"doors":[]}
            {"push":{"token":"00fc16"}}
            """#)
        #expect(
            rows == [
                "1 \(Self.home) - device 00fc13 2025-11-21T06:12:00.123Z door-a,door-b,user-7 live",
                "2 \(Self.home) - device 00fc14 - door-c live", "3 without a token",
                "4 without a subject",
            ])
    }

    @Test func `PostgreSQL's COPY is read with its escapes and its end`() throws {
        let sample = ImportSample(
            format: .copy, columns: [.token: "token", .lastSeen: "seen"], templates: ["{name}"],
            names: ["id", "token", "name", "seen"])
        let rows = try sample.read(
            "7\t\\\\x00fc13\ta\\tb\\\\c\\x41\\102\t2026-11-21 06:12:00+01\n8\tab\t\\N\t\\N\n\\.\nnot read\n"
        )
        #expect(
            rows == [
                "1 \(Self.home) - device 00fc13 2026-11-21T05:12:00.000Z a\tb\\cAB live",
                "2 without a subject",
            ])
    }

    @Test func `OneSignal's export: phones of Apple's, with those that are unsubscribed told`()
        throws
    {
        let sample = ImportSample(format: .onesignal, templates: ["user-{external_user_id}"])
        let header =
            "id,identifier,session_count,device_type,last_active,invalid_identifier,external_user_id"
        let rows = try sample.read(
            """
            \(header),notification_types
            1,00fc13,4,0,2026-11-20 10:00:00.000000,f,7,1
            2,00fc14,4,0,2026-11-20 10:00:00,t,8,1
            3,00fc15,4,0,2026-11-20 10:00:00,f,9,-2
            4,APA91b,4,1,2026-11-20 10:00:00,f,10,1
            """)
        let seen = "2026-11-20T10:00:00.000Z"
        #expect(
            rows == [
                "2 \(Self.home) - device 00fc13 \(seen) user-7 live",
                "3 \(Self.home) - device 00fc14 \(seen)  optedOut",
                "4 \(Self.home) - device 00fc15 \(seen)  optedOut", "5 of another platform",
            ])
        #expect(try sample.read("\(header)\n1,ab,4,0,,f,7").count == 1)
    }

    @Test func `Braze's users: each push token is a row`() throws {
        let sample = ImportSample(format: .braze, templates: ["user-{external_id}"])
        let rows = try sample.read(
            #"""
            {"external_id":"7","push_subscribe":"opted_in","apps":[{"last_used":"2026-10-01T00:00:00Z"},{"last_used":"2026-11-01T00:00:00Z"}],"push_tokens":[{"platform":"iOS","token":"00fc13","notifications_enabled":true},{"platform":"Android","token":"x"}]}
            {"external_id":"8","push_subscribe":"unsubscribed","push_tokens":[{"platform":"iOS","token":"00fc14"}]}
            {"external_id":"9","push_tokens":[{"platform":"ios","token":"00fc15","notifications_enabled":false}]}
            {"external_id":"10"}
            """#)
        #expect(
            rows == [
                "1 \(Self.home) - device 00fc13 2026-11-01T00:00:00.000Z user-7 live",
                "1 of another platform", "2 \(Self.home) - device 00fc14 -  optedOut",
                "3 \(Self.home) - device 00fc15 -  optedOut",
            ])
    }

    @Test(arguments: [1, 7, .max])
    func `SNS's listings: pages over several lines, one after another`(pieceBytes: Int) throws {
        let sample = ImportSample(format: .sns, templates: ["user-{/Attributes/CustomUserData}"])
        func endpoint(_ channel: String, _ token: String, _ enabled: String) -> String {
            """
            {
              "EndpointArn": "arn:aws:sns:eu-west-1:1:endpoint/\(channel)/app/uuid",
              "Attributes": {"Enabled": "\(enabled)", "Token": "\(token)", "CustomUserData": "7"}
            }
            """
        }
        let rows = try sample.read(
            """
            {
              "Endpoints": [
            \(endpoint("APNS", "00fc13", "true")),
            \(endpoint("APNS_SANDBOX", "00fc14", "false"))
              ],
              "NextToken": "[{\\"x\\""
            }
            {"Endpoints": [\(endpoint("GCM", "x", "true"))]}
            {"Endpoints": []}
            \(endpoint("APNS_VOIP", "00fc16", "true"))
            """, pieceBytes: pieceBytes)
        #expect(
            rows == [
                "3 \(Self.home) - device 00fc13 - user-7 live",
                "7 development com.example.Home - device 00fc14 -  dead",
                "14 of another platform", "19 \(Self.home) - voip 00fc16 - user-7 live",
            ])
    }

    @Test func `Pinpoint's endpoints say channel, status and opt-out`() throws {
        let sample = ImportSample(format: .pinpoint, templates: ["user-{/User/UserId}"])
        func endpoint(_ channel: String, _ status: String, _ optOut: String) -> String {
            #"{"Id":"i","ChannelType":"\#(channel)","Address":"00fc13","EndpointStatus":"\#(status)","#
                + #""OptOut":"\#(optOut)","EffectiveDate":"2026-11-01T00:00:00.000Z","#
                + #""User":{"UserId":"7"}}"#
        }
        let rows = try sample.read(
            [
                endpoint("APNS", "ACTIVE", "NONE"), endpoint("APNS_SANDBOX", "ACTIVE", "ALL"),
                endpoint("APNS", "INACTIVE", "NONE"), endpoint("EMAIL", "ACTIVE", "NONE"),
            ].joined(separator: "\n"))
        let seen = "2026-11-01T00:00:00.000Z"
        #expect(
            rows == [
                "1 \(Self.home) - device 00fc13 \(seen) user-7 live",
                "2 development com.example.Home - device 00fc13 \(seen)  optedOut",
                "3 \(Self.home) - device 00fc13 \(seen)  dead", "4 of another platform",
            ])
    }

    @Test func `subjects of another file come by a key`() throws {
        var sample = ImportSample(format: .csv, columns: [.token: "t"], templates: [])
        sample.joinColumn = "id"
        sample.joined = ["7": ["door-1", "door-2", "door-1"]]
        #expect(
            try sample.read("t,id\nab,7\ncd,8\n") == [
                "2 \(Self.home) - device ab - door-1,door-2 live", "3 without a subject",
            ])
    }

    @Test(arguments: [1, 2, 3, 5, 8, 64])
    func `rows are the same however the file comes in`(pieceBytes: Int) throws {
        let csv = ImportSample(format: .csv, columns: [.token: "t"], templates: ["{s}"])
        let text = "\u{FEFF}t,s\r\nab,\"x\r\ny\"\r\n\r\ncd,é\r\nef"
        #expect(try csv.read(text, pieceBytes: pieceBytes) == csv.read(text))
        #expect(try csv.read(text).count == 3)
    }
}
