// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import Testing

@testable import RegistrarAccess

@Suite struct `A service key` {
    @Test func `a service key that was made is known by the line that was made with it`() throws {
        let made = try #require(
            ServiceKey.make(id: "home-backend", apps: ["com.example.Home", "com.example.Lights"]))
        #expect(made.key.text.wholeMatch(of: /llr_[A-Za-z0-9_-]{43}/) != nil)
        #expect(!made.line.contains(made.key.text))
        #expect("\(made)".contains(Secret.placeholder) && !"\(made)".contains(made.key.text))
        let other = try #require(ServiceKey.make(id: "other", apps: []))
        #expect(other.key.text != made.key.text)
        let keys = try ServiceKeys(Array("# backends\n\n\(other.line)  # all\n\(made.line)\n".utf8))
        let caller = try #require(keys.caller(with: made.key.text))
        #expect(caller.id == "service:home-backend")
        let name = AccessFixture.installation
        #expect(
            caller.allows(app: "com.example.Lights", environment: .development, installation: name))
        #expect(
            !caller.allows(app: "com.example.Door", environment: .production, installation: name))
        #expect(caller.allows(subject: "any".utf8) && caller.allows(subject: []))
        let forAll = try #require(keys.caller(with: other.key.text))
        #expect(
            forAll.allows(app: "com.example.Door", environment: .production, installation: name))
    }

    @Test func `a service key that differs in one character is unknown`() throws {
        let made = try #require(ServiceKey.make(id: "a", apps: []))
        let keys = try ServiceKeys(Array(made.line.utf8))
        #expect(keys.caller(with: made.key.text) != nil)
        #expect(keys.caller(with: String(made.key.text.dropLast())) == nil)
        #expect(keys.caller(with: made.key.text + "A") == nil)
        #expect(keys.caller(with: "llr_") == nil)
        // Somebody who has read the file has no key.
        let digest = made.line.split(separator: " ")[1]
        #expect(keys.caller(with: "llr_\(digest)") == nil)
    }

    @Test(arguments: [
        ("", "is empty; a file without keys has a comment at least"),
        ("a 00 *", "has a wrong line 1: a SHA-256 has 64 hexadecimal digits"),
        (
            "#\na llr_0000 *",
            "has a wrong line 2: it has a key where the key's SHA-256 belongs"
        ),
        ("a", "has a wrong line 1: a line has an identifier, the key's SHA-256 and the apps"),
        ("a b c d", "has a wrong line 1: a line has an identifier, the key's SHA-256 and the apps"),
        ("ä SHA *", "has a wrong line 1: an identifier has 1 to 64 of A-Z a-z 0-9 . _ ~ -"),
        (
            "a SHA b,,c",
            "has a wrong line 1: the apps are bundle identifiers separated by commas, or *"
        ),
        (
            "a SHA *,b",
            "has a wrong line 1: the apps are bundle identifiers separated by commas, or *"
        ),
        ("a SHA *\na SHA b", "has the identifier of line 2 twice"),
    ])
    func `a wrong file of service keys is refused as a whole, and not quoted`(
        text: String, reason: String
    ) {
        let digest = String(repeating: "0a", count: 32)
        let bytes = Array(text.replacing("SHA", with: digest).utf8)
        do throws(FileFault) {
            _ = try ServiceKeys(bytes)
            Issue.record("accepted")
        } catch { #expect(error.description == reason) }
    }

    @Test func `the file of service keys may be without keys, and has a bound`() throws {
        #expect(try ServiceKeys(Array("# nobody\n".utf8)).count == 0)
        let digest = String(repeating: "0a", count: 32)
        let lines = (0...ServiceKeys.keysMax).map { "k\($0) \(digest) *\n" }
        #expect(try ServiceKeys(Array(lines.dropLast().joined().utf8)).count == 1000)
        #expect(throws: FileFault("has more than 1000 keys")) {
            try ServiceKeys(Array(lines.joined().utf8))
        }
        #expect(throws: FileFault("is not UTF-8")) { try ServiceKeys([0xFF]) }
    }

    @Test func `a service key is not made for a name that the file could not have`() {
        #expect(ServiceKey.make(id: "", apps: []) == nil)
        #expect(ServiceKey.make(id: "two words", apps: []) == nil)
        #expect(ServiceKey.make(id: String(repeating: "a", count: 65), apps: []) == nil)
        #expect(ServiceKey.make(id: "a", apps: ["*,b"]) == nil)
    }
}
