// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSDelivery
internal import Foundation
internal import PushModel
internal import Testing

@testable internal import Configuration
@testable internal import Worker

@Suite final class `Signing keys in files` {
    private let folder = FileManager.default.temporaryDirectory
        .appendingPathComponent("keys-\(UInt64.random(in: 0 ... .max))")

    init() throws {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    /// - Parameter age: how long ago it was written, in seconds.
    @discardableResult
    private func write(_ name: String, _ text: String, age: Double = 0) throws -> String {
        let file = folder.appendingPathComponent(name)
        try text.write(to: file, atomically: true, encoding: .utf8)
        try FileManager.default.setAttributes(
            [.modificationDate: Date(timeIntervalSinceNow: -age)], ofItemAtPath: file.path)
        return file.path
    }

    private func look(_ change: (inout Configuration.APNS.Credential) -> Void) -> KeySource.Look {
        var credential = Configuration.APNS.Credential()
        change(&credential)
        return KeySource(credential).look()
    }

    @Test(
        arguments: [
            ("AuthKey_FGHIJ67890.p8", "FGHIJ67890"), ("/keys/AuthKey_FGHIJ67890.p8", "FGHIJ67890"),
            ("AuthKey_FGHIJ6789.p8", nil), ("AuthKey_fghij67890.p8", nil), ("FGHIJ67890.p8", nil),
            ("AuthKey_FGHIJ67890.p8.old", nil), ("..AuthKey_FGHIJ67890.p8", nil),
        ] as [(String, String?)])
    func `signing keys in files are named by Apple for their key IDs`(file: String, keyID: String?)
    {
        #expect(Configuration.APNS.Credential.keyID(inNameOf: file) == keyID)
    }

    @Test func `signing keys in files have the key ID of the file's name, or the one beside it`()
        throws
    {
        let named = try write("AuthKey_AAAAAAAAAA.p8", "a")
        let plain = try write("key.p8", "b")
        #expect(look { $0.keyFile = named }.keys == [.init(keyID: "AAAAAAAAAA", pem: Secret("a"))])
        let look = look {
            $0.keyFile = plain
            $0.keyID = "BBBBBBBBBB"
            $0.nextKeyFile = named
        }
        #expect(look.keys.map(\.keyID) == ["BBBBBBBBBB", "AAAAAAAAAA"])
        #expect(look.newer.map(\.keyID) == ["AAAAAAAAAA"], "it is to take over")
    }

    @Test func `signing keys of a folder are all that are named so, the newest first`() throws {
        try write("AuthKey_AAAAAAAAAA.p8", "a", age: 200)
        try write("AuthKey_BBBBBBBBBB.p8", "b", age: 100)
        try write("README", "no key")
        let look = look { $0.keyFolder = folder.path }
        #expect(look.keys.map(\.keyID) == ["BBBBBBBBBB", "AAAAAAAAAA"])
        #expect(look.newer.isEmpty && look.problems.isEmpty)
    }

    @Test func `signing keys of a folder are newer than the one that the configuration names`()
        throws
    {
        try write("AuthKey_AAAAAAAAAA.p8", "a", age: 200)
        try write("AuthKey_BBBBBBBBBB.p8", "b", age: 100)
        let look = look {
            $0.keyFolder = folder.path
            $0.keyID = "AAAAAAAAAA"
        }
        #expect(look.keys.map(\.keyID) == ["AAAAAAAAAA", "BBBBBBBBBB"])
        #expect(look.newer.map(\.keyID) == ["BBBBBBBBBB"])
    }

    @Test func `signing keys in files that are not there yet, or no longer, are said to be so`()
        throws
    {
        let missing = folder.appendingPathComponent("AuthKey_CCCCCCCCCC.p8").path
        let next = look {
            $0.keyFile = missing
            $0.nextKeyFile = missing
        }
        #expect(next.keys.isEmpty && next.problems.count == 1)
        let empty = look { $0.keyFolder = folder.path }
        #expect(empty.problems.count == 1)
        #expect(empty.problems[0].contains("AuthKey_XXXXXXXXXX.p8"))
    }

    @Test
    func `provider tokens in files have their key's ID, and must be of the credential's team`()
        throws
    {
        let parts = [
            #"{"alg":"ES256","kid":"HOMEKEY001"}"#, #"{"iss":"HOMETEAM01","iat":1763712000}"#,
        ]
        let text =
            (parts.map { Array($0.utf8) } + [Array(repeating: 7, count: 64)])
            .map(Base64URL.encode).joined(separator: ".")
        let file = try write("token", text + "\r\n")
        let home = look {
            $0.providerTokenFile = file
            $0.team = "HOMETEAM01"
        }
        #expect(home.problems.isEmpty && home.keys.map(\.keyID) == ["HOMEKEY001"])
        #expect(home.keys[0].pem == Secret(text), "without the end of the line")
        #expect(try home.keys[0].key(team: "HOMETEAM01").ready?.keyID == "HOMEKEY001")
        let other = look {
            $0.providerTokenFile = file
            $0.team = "OTHERTEAM1"
        }
        #expect(other.keys.isEmpty)
        #expect(other.problems[0].hasSuffix("of team HOMETEAM01, and the credential of OTHERTEAM1"))
        let large = try write("large", String(repeating: "a", count: 100_000))
        let refused = look { $0.providerTokenFile = large }
        #expect(refused.keys.isEmpty && refused.problems[0].contains("cannot be read"))
    }
}
