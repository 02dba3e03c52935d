// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Foundation
import PushModel
import Testing

@testable import FleetKit

@Suite struct `The search for secrets` {
    private static let deviceToken = (0..<32).map { UInt8(truncatingIfNeeded: 7 * $0 + 200) }
    private static let keyLine = "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgabcdefghijklmnop"
    private static let password = "hunter-sasl-password"

    private static let search = {
        var search = SecretSearch()
        search.add(deviceToken: deviceToken)
        search.add(
            signingKey: """
                -----BEGIN PRIVATE KEY-----
                \(keyLine)
                qrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/abcdefghijklmnopq
                rstuvwxyz=
                -----END PRIVATE KEY-----
                """)
        search.add(password: password)
        return search
    }()

    private static func kinds(in text: String) -> [SecretSearch.Kind] {
        search.findings(in: Array(text.utf8)).map(\.kind)
    }

    @Test(arguments: [
        Hexadecimal.encode(Self.deviceToken), Hexadecimal.encode(Self.deviceToken).uppercased(),
        "/3/device/\(Hexadecimal.encode(Self.deviceToken))?x=1",
        "0\(Hexadecimal.encode(Self.deviceToken))",
        String(Hexadecimal.encode(Self.deviceToken).prefix(16)),
        Data(Self.deviceToken).base64EncodedString(),
        "key=\(Data(Self.deviceToken).base64EncodedString())",
        Data(Self.deviceToken).base64EncodedString().replacing("+", with: "-")
            .replacing("/", with: "_"),
    ])
    func `a device token is found in every notation, also within something else`(_ text: String) {
        #expect(Self.kinds(in: "{\"error\":\"\(text)\"}") == [.deviceToken])
        #expect(Self.kinds(in: text) == [.deviceToken])
    }

    @Test(arguments: [
        Self.keyLine, "qrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/abcdefghijklmnopq",
        "x=\(Self.keyLine.prefix(20))",
    ])
    func `any line of a signing key is found`(_ text: String) {
        #expect(Self.kinds(in: "cannot read \(text) in the file") == [.signingKey])
    }

    @Test(arguments: [
        "eyJhbGciOiJFUzI1NiIsImtpZCI6IkExIn0.eyJpc3MiOiJURUFNIiwiaWF0IjoxfQ.c2lnbmF0dXJl",
        "bearer=eyJhbGciOiJFUzI1NiIsImtpZCI6IkExIn0.eyJpc3MiOiJURUFNIiwiaWF0IjoxfQ",
    ])
    func `whatever has the form of a JSON Web Token is found`(_ text: String) {
        #expect(Self.kinds(in: "authorization: \(text)") == [.webToken])
    }

    @Test func `a password is found, and each finding names its line and not the secret`() {
        let text = "one\ntwo \(Self.password)=x\n\n\(Self.password) \(Self.keyLine)\n"
        #expect(
            Self.search.findings(in: Array(text.utf8)) == [
                .init(line: 2, kind: .password), .init(line: 4, kind: .signingKey),
                .init(line: 4, kind: .password),
            ])
        #expect(
            ShownText("worker-1.log", Array(text.utf8)).leaks(Self.search) == [
                "worker-1.log, line 2, shows a password",
                "worker-1.log, line 4, shows a part of a signing key",
                "worker-1.log, line 4, shows a password",
            ])
    }

    @Test(arguments: [
        // A token ID, as it is shown in place of the token.
        "9f86d081884c7d65", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "6f0a1c52-91d4-8b7e-a3c0-5b7d2f7e9c11", "lamplighter-dead-letters-0000000000000000001",
        "2026-11-21T06:12:00.123Z", "/etc/lamplighter/keys/AuthKey_ABCDE12345.p8",
        "eyJhbGciOiJFUzI1NiIsImtpZCI6IkExIn0", "monkeyJungle.swift.and.other.things",
        "c8cfd6dde4ebf2f", "hunter-sasl-pas",
    ])
    func `what is no secret is not taken for one`(_ text: String) {
        #expect(Self.kinds(in: "x \(text) y\n\(text)") == [])
    }

    @Test func `what is looked for is counted, so that a search for nothing is noticed`() {
        // Two lines of the key are long enough to be told from words.
        #expect(Self.search.count == 4)
        #expect(SecretSearch().count == 0)
    }
}
