// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import HTTPListener
internal import PushModel
internal import Testing

@testable internal import Registrar

@Suite struct `What replicas sign for each other` {
    private static let seal = PeerSeal(Secret("a-token-that-the-registrars-share"))
    private static let now = WallTime(milliseconds: 1_800_000_000_000)
    private static let body = Array(#"{"targets":[]}"#.utf8)

    private static var passed: PeerSeal.Passed {
        PeerSeal.Passed(
            method: "DELETE", target: "/v1/x?belowSequence=3", owner: "http://10.0.0.2:8443",
            kind: "handler", caller: "service:home", date: now, digest: PeerSeal.digest(body))
    }

    /// The request as it arrives.
    private static func question(
        _ headers: [(name: String, value: String)] = seal.headers(of: passed)
    ) -> HTTPRequest {
        var question = HTTPRequest(
            method: .delete, path: "/v1/x", query: ["belowSequence": "3"],
            headers: HTTPHeaders(headers))
        question.rawQuery = "belowSequence=3"
        return question
    }

    private static func caller(
        _ question: HTTPRequest, by seal: PeerSeal = seal, to owner: String = passed.owner,
        now: WallTime = now
    ) -> String? {
        seal.passed(question, to: owner, now: now)?.caller
    }

    @Test func `a request that is passed on names its caller`() {
        #expect(
            Self.seal.passed(Self.question(), to: Self.passed.owner, now: Self.now) == Self.passed)
        let headers = Self.seal.headers(of: Self.passed)
        #expect(!headers.contains { $0.value.contains("a-token-that-the-registrars-share") })
    }

    @Test func `a request that is altered, or for another replica, is nobody's`() {
        var question = Self.question()
        question.method = .put
        #expect(Self.caller(question) == nil)
        question = Self.question()
        question.path = "/v1/y"
        #expect(Self.caller(question) == nil)
        question = Self.question()
        question.rawQuery = ""
        #expect(Self.caller(question) == nil)
        #expect(Self.caller(Self.question(), to: "http://10.0.0.3:8443") == nil)
        #expect(
            Self.caller(Self.question(), by: PeerSeal(Secret("another-token-of-32-characters--")))
                == nil)
        #expect(Self.caller(Self.question()) == "service:home")
    }

    @Test func `each header of it counts, and is there once`() {
        let headers = Self.seal.headers(of: Self.passed)
        for index in headers.indices {
            var changed = headers
            changed.remove(at: index)
            #expect(Self.caller(Self.question(changed)) == nil)
            changed = headers
            changed[index].value += "0"
            #expect(Self.caller(Self.question(changed)) == nil, "\(headers[index].name)")
            #expect(Self.caller(Self.question(headers + [headers[index]])) == nil)
        }
    }

    @Test func `a recorded request is of no use after half a minute`() {
        #expect(Self.caller(Self.question(), now: Self.now + .seconds(30)) != nil)
        #expect(Self.caller(Self.question(), now: Self.now + .seconds(31)) == nil)
        #expect(Self.caller(Self.question(), now: Self.now + .seconds(-31)) == nil)
    }

    @Test(arguments: ["", "x", "-", "9223372036854775807", "-9223372036854775808", "1.5"])
    func `a date that no replica has written is refused`(date: String) {
        var headers = Self.seal.headers(of: Self.passed)
        headers[2].value = date
        #expect(Self.caller(Self.question(headers)) == nil)
    }

    @Test func `an answer is that of one replica to one request`() {
        let signature = Self.seal.signature(ofAnswer: 200, Self.body, to: Self.passed)
        func isSigned(
            _ status: Int = 200, _ body: [UInt8] = Self.body, _ passed: PeerSeal.Passed? = nil
        ) -> Bool {
            Self.seal.isSigned(
                signature, status: status, body: body, answering: passed ?? Self.passed)
        }
        #expect(isSigned())
        #expect(!isSigned(204) && !isSigned(200, []))
        var other = Self.passed
        other.date = other.date + .milliseconds(1)
        #expect(!isSigned(200, Self.body, other))
        #expect(!Self.seal.isSigned("", status: 200, body: Self.body, answering: Self.passed))
        // Nor is a request's signature one of an answer.
        let own = Self.seal.headers(of: Self.passed).last!.value
        #expect(!Self.seal.isSigned(own, status: 200, body: Self.body, answering: Self.passed))
    }

    @Test func `an address is believed that a replica has signed`() {
        let url = "http://10.0.0.2:8443"
        let announcement = Self.seal.announcement(of: url)
        #expect(Self.seal.url(in: announcement) == url)
        for wrong in [
            "", url, "http://10.0.0.9:8443" + announcement.dropFirst(url.count), announcement + " ",
            announcement + "0", " " + announcement,
        ] {
            #expect(Self.seal.url(in: wrong) == nil, "\(wrong)")
        }
    }

    @Test func `an owner of another token is not asked, and is an owner`() {
        let url = "http://10.0.0.3:8443"
        let other = PeerSeal(Secret("another-token-of-32-characters--"))
        let announced = [
            Self.seal.announcement(of: url), other.announcement(of: url), nil, nil,
        ]
        let owners = OwnerDirectory.Owners(announced: announced, Self.seal)
        #expect(owners.urls == [url, nil, nil, nil])
        #expect(owners.unowned(but: [3]) == [2])
        #expect(OwnerDirectory.Owners(announced: announced, nil).unowned(but: [3]) == [0, 1, 2])
    }

    @Test func `an announcement says whether a replica has imports, and is signed with it`() {
        let url = "http://10.0.0.2:8443"
        let plain = Self.seal.announcement(of: url)
        let imports = Self.seal.announcement(of: url, hasImports: true)
        for text in [plain, imports] { #expect(Self.seal.url(in: text) == url) }
        #expect(!Self.seal.hasImports(in: plain) && Self.seal.hasImports(in: imports))
        // Neither can be made of the other.
        let forged = [
            imports.replacing(" imports", with: ""),
            plain.replacing(" ", with: " imports "), imports.replacing("imports", with: "exports"),
        ]
        for text in forged {
            #expect(Self.seal.url(in: text) == nil && !Self.seal.hasImports(in: text))
        }
        let owners = OwnerDirectory.Owners(announced: [plain, imports, nil], Self.seal)
        #expect(owners.urls == [url, url, nil] && owners.hasImports)
        #expect(!OwnerDirectory.Owners(announced: [plain, forged[1]], Self.seal).hasImports)
        #expect(!OwnerDirectory.Owners(announced: [imports], nil).hasImports)
    }
}
