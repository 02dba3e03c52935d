// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import FleetKit
import Foundation
import PushModel
import RecordFormats
import Testing

/// `lamplighter registrations import` and `suppressions import`; no worker runs.
@Suite(.serialized, .fleet(TestPlan(workers: 0)))
struct `An import on the command line` {
    private let fleet: Fleet

    init() throws { fleet = try #require(Fleet.current) }

    private static let columns =
        "installation=id,token=token,lastSeen=seen,optedOut=muted,dead=dead"

    private func file(_ lines: [String], _ name: String = "csv") throws -> String {
        let path = fleet.directory.appending(path: "import-\(UUID()).\(name)").path
        try lines.joined(separator: "\n").write(toFile: path, atomically: true, encoding: .utf8)
        return path
    }

    private func csv(_ rows: String...) throws -> String {
        try file(["id,token,seen,muted,dead,user"] + rows)
    }

    private func run(_ file: String, _ more: String..., input: String = "") async throws
        -> CommandResult
    {
        try await fleet.command(
            [
                "registrations", "import", file, "--format", "csv", "--columns", Self.columns,
                "--app", TestApp.home, "--environment", "production", "--subject", "user-{user}",
                "--follow", "0s",
            ] + more, input: input)
    }

    /// The last value of a key; "" for a tombstone or none.
    private func value(_ key: String, in topic: FleetTopics.Written = .registrations) async throws
        -> String
    {
        let records = try await fleet.log(of: topic).readToEnd()
        return records.last { $0.key == key }?.value ?? ""
    }

    private func key(_ installation: String) -> String {
        "production/\(TestApp.home)/\(installation)/imported.device"
    }

    @Test func `rows become registrations, once, and later ones replace them`() async throws {
        let (one, two) = (TestToken(), TestToken())
        let name = UUID().uuidString
        let rows = try csv(
            "\(name),\(one.hex),2026-01-01T00:00:00Z,,,7", "\(name)-2,\(two.hex),,f,f,8")
        let dry = try await run(rows, "--dry-run")
        #expect(dry.status == 0, "\(dry.output)")
        dry.expect("2 rows: would write 2 registrations")
        #expect(try await value(key(name)) == "")
        let result = try await run(rows)
        #expect(result.status == 0, "\(result.output)")
        result.expect("2 rows: written 2 registrations")
        #expect(!result.output.contains(one.hex))
        #expect(
            try await value(key(name))
                == #"{"v":1,"environment":"production","app":"\#(TestApp.home)","installation":"\#(name)","#
                + #""handler":"imported.device","registeredAt":"2026-01-01T00:00:00.000Z","#
                + #""targets":[{"class":"device","token":"\#(one.hex)","shows":[{"subjects":["user-7"]}]}]}"#
        )
        try await run(rows).expect("written 0 registrations", "2 imported before")
        let later = try csv("\(name),\(two.hex),2026-01-02T00:00:00Z,,,9")
        try await run(later).expect("written 1 registration, of which 1 over")
        #expect(try await value(key(name)).contains("user-9"))
        try await run(rows).expect("written 0 registrations")
        try await run(rows, "--replace").expect("written 2 registrations")
    }

    @Test func `a record lies where a producer of Java's would put it`() async throws {
        let name = UUID().uuidString
        #expect(try await run(csv("\(name),\(TestToken().hex),,,,7")).status == 0)
        let records = try await fleet.log(of: .registrations).readToEnd()
        let record = try #require(records.last { $0.key == key(name) })
        let partitions = Set(records.map(\.partition)).max()! + 1
        #expect(
            Int(record.partition)
                == KeyPartition.of(Array(key(name).utf8), partitions: max(4, Int(partitions))))
    }

    @Test func `who has registered is left alone, by installation and by token`() async throws {
        let (mine, rows) = (TestToken(), TestToken())
        let name = UUID().uuidString
        try fleet.write(
            to: .registrations, key: "production/\(TestApp.home)/\(name)/Any",
            value: #"{"v":1,"targets":[{"class":"device","token":"\#(mine.hex)","shows":[]}]}"#)
        let result = try await run(
            csv(
                "\(name),\(rows.hex),2026-01-01T00:00:00Z,,,7",
                "another-\(name),\(mine.hex),2026-01-01T00:00:00Z,,,7",
                ",\(mine.hex),2026-01-01T00:00:00Z,,,7"))
        result.expect("written 0 registrations", "3 of installations that have registered")
    }

    @Test func `an import ends at the next one if its installation has registered since`()
        async throws
    {
        let name = UUID().uuidString
        let rows = try csv("\(name),\(TestToken().hex),2026-01-01T00:00:00Z,,,7")
        #expect(try await run(rows).status == 0)
        #expect(try await value(key(name)) != "")
        try fleet.write(
            to: .registrations, key: "production/\(TestApp.home)/\(name)/default.device",
            value: #"{"v":1,"targets":[]}"#)
        try await run(rows).expect("ended: 1 import")
        #expect(try await value(key(name)) == "")
    }

    @Test func `opt-outs and dead tokens are left out, or suppressed`() async throws {
        let (muted, dead) = (TestToken(), TestToken())
        let rows = try csv(
            ",\(muted.hex),2026-01-01T00:00:00Z,t,,7", ",\(dead.hex),2026-01-01T00:00:00Z,,t,7")
        try await run(rows).expect(
            "written 0 registrations", "1 of who has opted out", "1 of dead tokens")
        let suppressing = try await run(rows, "--suppress", "dead", "--suppress", "opted-out")
        suppressing.expect("suppressed: 1 dead tokens, 1 of who has opted out; 0 were")
        let value = try await value(
            "production/\(TestApp.home)/\(dead.hex)", in: .suppressions)
        #expect(
            value
                == #"{"v":1,"status":410,"reason":"Unregistered","registeredAt":"2026-01-01T00:00:00.000Z"}"#
        )
        try await run(rows, "--suppress", "dead").expect("suppressed: 0 dead", "1 were suppressed")
    }

    @Test func `bad rows are listed with their lines, and never written in part`() async throws {
        let bad = fleet.directory.appending(path: "bad-\(UUID())").path
        let name = UUID().uuidString
        let rows = try csv("\(name),xyz,,,,7", "\(name),\(TestToken().hex),,,,7", "one,field")
        let result = try await run(rows, "--bad", bad)
        result.expect("1 row: written 1 registration", "bad: 2 rows")
        let listed = try String(contentsOfFile: bad, encoding: .utf8)
        #expect(
            listed == "\(rows):2: token is not an even number of hexadecimal digits\n"
                + "\(rows):4: it has 2 fields, and there are 6\n")
        let strict = try await run(rows, "--bad-max", "1")
        #expect(strict.status == 65)
        strict.expect("more than 1 rows are bad")
    }

    @Test func `gzip is read, also from standard input, and what is cut off is told`() async throws
    {
        let rows = try csv(",\(TestToken().hex),,,,7")
        let gzip = try await fleet.run(["-k", rows], program: "/bin/gzip")
        #expect(gzip.status == 0)
        try await run(rows + ".gz").expect("written 1 registration")
        let bytes = try Data(contentsOf: URL(filePath: rows + ".gz"))
        try bytes.dropLast(5).write(to: URL(filePath: rows + ".cut"))
        let cut = try await run(rows + ".cut")
        #expect(cut.status == 65)
        cut.expect("its gzip ends too early")
        let text = try String(contentsOfFile: rows, encoding: .utf8)
        try await run("-", input: text).expect("written 0 registrations", "1 imported before")
    }

    @Test func `subjects come from another file by a key`() async throws {
        let name = UUID().uuidString
        let join = try file(["7,door-1", "8,door-9", "\"7\",\"door,2\""])
        let result = try await fleet.command([
            "registrations", "import", try csv("\(name),\(TestToken().hex),,,,7"), "--format",
            "csv", "--columns", Self.columns, "--app", TestApp.home, "--environment", "production",
            "--join", join, "--join-column", "user", "--follow", "0s",
        ])
        #expect(result.status == 0, "\(result.output)")
        #expect(try await value(key(name)).contains(#""subjects":["door-1","door,2"]"#))
    }

    @Test func `a trial sends to some rows, and what APNs refuses keeps all from being written`()
        async throws
    {
        let good = try csv(",\(TestToken().hex),,,,7", ",\(TestToken().hex),,,,8")
        let result = try await run(good, "--trial", "5")
        result.expect("trial: 2 pushes: 2 accepted", "written 2 registrations")
        // The simulator knows of each token whose app it is, from its first push.
        let other = try await fleet.command([
            "registrations", "import", good, "--format", "csv", "--columns", Self.columns, "--app",
            TestApp.garden, "--environment", "production", "--subject", "user-{user}", "--trial",
            "5", "--follow", "0s",
        ])
        #expect(other.status == 65, "\(other.output)")
        other.expect("2 DeviceTokenNotForTopic", "Nothing was written")
    }

    @Test func `suppressions import takes dead tokens up to when they were last seen`() async throws
    {
        let token = TestToken()
        let rows = try csv(",\(token.hex),2026-01-01T00:00:00Z,,,", ",zz,,,,")
        func suppress() async throws -> CommandResult {
            try await fleet.command([
                "suppressions", "import", rows, "--format", "csv", "--columns", Self.columns,
                "--app", TestApp.home, "--environment", "production", "--reason", "Gone",
            ])
        }
        try await suppress().expect(
            "1 row: suppressed 1 token; 0 suppressed before, 0 left out, 1 bad")
        #expect(
            try await value("production/\(TestApp.home)/\(token.hex)", in: .suppressions)
                .contains(#""reason":"Gone","registeredAt":"2026-01-01T00:00:00.000Z""#))
        try await suppress().expect("suppressed 0 tokens; 1 suppressed before")
    }

    @Test(arguments: [
        ["x", "--format", "csv"], ["x", "--format", "xml", "--subject", "a"],
        ["x", "--format", "csv", "--subject", "a", "--columns", "token"],
        ["x", "--format", "csv", "--subject", "a{", "--columns", "token=t"],
        ["x", "--format", "csv", "--subject", "a"],
        ["x", "--format", "copy", "--subject", "a", "--columns", "token=t"],
        ["x", "--format", "csv", "--subject", "a", "--join", "y"],
        ["x", "--format", "csv", "--subject", "a", "--suppress", "all"],
        ["-", "--format", "csv", "--subject", "a", "--columns", "token=t", "--trial", "5"],
        ["x", "--format", "csv", "--subject", "a", "--columns", "token=t", "--delimiter", "ab"],
    ])
    func `a slip on the command line of an import is 64`(_ arguments: [String]) async throws {
        let result = try await fleet.command(["registrations", "import"] + arguments)
        #expect(result.status == 64, "\(result.output)")
    }

    @Test func `what is no file of rows is told with 65`() async throws {
        let zip = fleet.directory.appending(path: "users-\(UUID()).zip").path
        try Data([0x50, 0x4B, 3, 4, 0]).write(to: URL(filePath: zip))
        for (file, told) in [
            ("/no/such/file", "does not exist"), (zip, "unzip -p"),
            (try self.file(["a,b", "1,2"]), "it has no column 'id'"),
        ] {
            let result = try await run(file)
            #expect(result.status == 65, "\(result.output)")
            result.expect(told)
        }
    }

    @Test func `what is imported ends when the phone registers with a registrar`() async throws {
        let registrar = try await registrar()
        defer { registrar.process.signal(SIGTERM) }
        let (byName, byToken) = (UUID().uuidString, TestToken())
        let rows = try csv(
            "\(byName),\(TestToken().hex),,,,7", ",\(byToken.hex),,,,8", "\(byName)-2,0102,,,,9")
        try await run(rows).expect("written 3 registrations")
        let records = try await fleet.log(of: .registrations).readToEnd()
        let ofToken = try #require(
            records.last { $0.value?.contains(byToken.hex) == true }?.key)
        #expect(ofToken.contains("/token-"))
        // It reads what was imported before it answers for it.
        try await eventually("the registrar to end the import") {
            _ = try await registrar.put(
                "\(byName)/device", #"{"targets":[{"token":"\#(byToken.hex)"}]}"#)
            let left = [try await value(key(byName)), try await value(ofToken)]
            return left == ["", ""]
        }
        #expect(try await value(key("\(byName)-2")) != "")
        // A phone that takes its registration back has none left.
        try await eventually("the registrar to end the other") {
            _ = try await registrar.delete("\(byName)-2/device")
            return try await value(key("\(byName)-2")) == ""
        }
        let refused = try await registrar.put(
            "\(byName)/device/imported.device", #"{"targets":[]}"#)
        #expect(refused == "404" || refused == "400" || refused == "422", "\(refused)")
    }

    private func eventually(
        _ what: String, _ condition: () async throws -> Bool
    ) async throws {
        let patience = Patience()
        while try await !condition() {
            try #require(!patience.isOver, "waited for \(what)")
            try await Task.sleep(for: .milliseconds(200))
        }
    }

    private struct RunningRegistrar {
        let process: FleetProcess
        let base: String
        let key: String
        let fleet: Fleet

        /// - Returns: the status.
        func put(_ path: String, _ body: String) async throws -> String {
            try await ask(path, ["-X", "PUT", "-d", body])
        }

        func delete(_ path: String) async throws -> String {
            try await ask(path, ["-X", "DELETE"])
        }

        private func ask(_ path: String, _ options: [String]) async throws -> String {
            let result = try await fleet.run(
                options + [
                    "-s", "-o", "/dev/null", "-w", "%{http_code}", "-H",
                    "Authorization: Bearer \(key)", "-H", "Content-Type: application/json",
                    "\(base)/v1/apps/\(TestApp.home)/environments/production/installations/\(path)",
                ], program: "/usr/bin/curl")
            return result.output
        }
    }

    private func registrar() async throws -> RunningRegistrar {
        let path = fleet.directory.appending(path: "registrar-\(UUID())").path
        let made = try await fleet.run([
            "registrar-key", "create", "--id", "phones", "--app", TestApp.home, "--append",
            path + ".keys",
        ])
        let port = try ProcessFleet.freePort()
        var text = try String(contentsOf: fleet.configurationFile, encoding: .utf8)
        text += "registrar: {port: \(port), auth: {serviceKeysFile: \(path).keys}}\n"
        try text.write(toFile: path + ".yaml", atomically: true, encoding: .utf8)
        let process = try FleetProcess(
            "registrar", program: try Fleet.program,
            arguments: ["registrar", "--config", path + ".yaml"], log: path + ".log", input: "")
        let key = try #require(made.output.split(separator: "\n").first.map(String.init))
        return RunningRegistrar(
            process: process, base: "http://127.0.0.1:\(port)", key: key, fleet: fleet)
    }
}
