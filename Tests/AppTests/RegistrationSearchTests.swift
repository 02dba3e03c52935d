// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import OpenSSL
internal import PushModel
internal import Testing

@testable internal import Worker
@testable internal import lamplighter

@Suite struct `A search of registrations` {
    private static let app = "com.example.Home"

    private struct Record {
        var key: String
        var value: String?
    }

    private func registration(
        _ installation: String, _ targets: String, handler: String = "H", app: String = Self.app,
        environment: String = "production"
    ) -> Record {
        Record(
            key: "\(environment)/\(app)/\(installation)/\(handler)",
            value: #"{"v":1,"environment":"\#(environment)","app":"\#(app)","#
                + #""installation":"\#(installation)","handler":"\#(handler)","#
                + #""targets":[\#(targets)]}"#)
    }

    private func control(_ token: String?, _ subject: String) -> String {
        let token = token.map { #""token":"\#($0)","# } ?? ""
        return #"{"class":"control",\#(token)"shows":[{"kind":"lock","subjects":["\#(subject)"]}]}"#
    }

    private func found(
        _ wanted: RegistrationSearch.Wanted, app: String? = nil,
        environment: PushEnvironment? = nil, _ records: [Record]
    ) throws -> [FoundRegistration] {
        var search = RegistrationSearch(
            try configuration(""), wanted, app: app, environment: environment)
        for record in records {
            Array(record.key.utf8).withUnsafeBytes { key in
                guard let value = record.value else {
                    return search.record(
                        key: key, value: nil, timestamp: WallTime(milliseconds: 1_000))
                }
                Array(value.utf8).withUnsafeBytes { value in
                    search.record(key: key, value: value, timestamp: WallTime(milliseconds: 1_000))
                }
            }
        }
        return search.found
    }

    @Test func `a search by subject reads escapes, and takes no part of a word for it`() throws {
        let records = [
            registration("A", control("ab", "door")), registration("B", control("cd", "door-2")),
            registration("C", control("ef", #"d\u006for"#)),
        ]
        let found = try found(.subject("door"), records)
        #expect(found.map(\.installation) == ["A", "C"])
        #expect(found[0].targets[0].kinds == ["lock"] && found[0].targets[0].subjects == ["door"])
        #expect(found[0].writtenAt == "1970-01-01T00:00:01.000Z" && found[0].problem == nil)
    }

    @Test func `a search by token finds it by its ID alone`() throws {
        let id = Hexadecimal.encode(SHA256Digest.of([0xCD]).prefix(8))
        let records = [
            registration("A", control("ab", "door")), registration("B", control("CD", "door")),
        ]
        #expect(try found(.token(id), records).map(\.installation) == ["B"])
    }

    @Test func `a channel's token is its ID in base64`() throws {
        let id = Hexadecimal.encode(SHA256Digest.of(Array("tst-srch-chnl".utf8)).prefix(8))
        let channel =
            #"{"class":"channel","token":"dHN0LXNyY2gtY2hubA==","shows":[{"subjects":["match-9"]}]}"#
        let found = try found(.token(id), [registration("A", channel)])
        #expect(found.map(\.installation) == ["A"] && found[0].problem == nil)
        #expect(found[0].targets.map(\.tokenID) == [id])
    }

    @Test func `a search by installation finds targets without a token, in its scope`() throws {
        let records = [
            registration("A", control(nil, "door")),
            registration("A", control("ab", "door"), environment: "development"),
            registration("B", control("ab", "door")),
        ]
        let all = try found(.installation("A"), records)
        #expect(all.map(\.environment) == ["development", "production"])
        #expect(all[1].targets.map(\.tokenID) == [nil])
        let some = try found(.installation("A"), environment: .production, records)
        #expect(some.map(\.environment) == ["production"])
        #expect(try found(.installation("A"), app: "com.example.Mail", records).isEmpty)
    }

    @Test func `a search says why a worker cannot read a registration`() throws {
        let found = try found(
            .installation("A"),
            [registration("A", control("ab", "door"), app: "com.example.Nobody")])
        #expect(found.first?.problem?.contains("no credential serves this app") == true)
    }

    @Test func `a search counts the last record of a key alone`() throws {
        let (first, second) = (
            registration("A", control("ab", "door")), registration("A", control("ab", "hall"))
        )
        let removed = Record(key: first.key, value: nil)
        #expect(try found(.subject("door"), [first, second]).isEmpty)
        #expect(try found(.subject("door"), [second, first]).count == 1)
        #expect(try found(.installation("A"), [first, removed]).isEmpty)
    }
}
