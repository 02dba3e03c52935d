// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Foundation
import Testing

@testable import LamplighterClientCore

@Suite struct `What an answer means` {
    let now = Date(timeIntervalSince1970: 1_780_000_000)

    @Test func `a problem names what is wrong, where, and what to do`() throws {
        let body = """
            {"type":"/problems/invalid","title":"Invalid","status":422,"detail":"no hexadecimal",\
            "remedy":"Send the token as hexadecimal.","field":"/targets/0/token","more":{"x":1}}
            """
        guard
            case .refused(let problem) = Answer(
                Response(status: 422, body: Data(body.utf8)), now: now)
        else {
            Issue.record("422 is not refused")
            return
        }
        #expect(problem.name == "invalid")
        #expect(problem.field == "/targets/0/token")
        #expect(problem.remedy == "Send the token as hexadecimal.")
    }

    @Test func `the type may be a whole URI`() {
        let body = #"{"type":"https://example.com/problems/staleSequence","storedSequence":18}"#
        let answer = Answer(Response(status: 409, body: Data(body.utf8)), now: now)
        #expect(answer == .stale(stored: 18))
    }

    @Test func `a stored sequence that no client may have is one that it may`() {
        for (stored, sequence) in [
            (Int64.max, Snapshot.sequenceMax), (Snapshot.sequenceMax + 1, Snapshot.sequenceMax),
            (-1, 0), (Int64.min, 0), (17, 17),
        ] {
            let body = #"{"type":"/problems/staleSequence","storedSequence":\#(stored)}"#
            let answer = Answer(Response(status: 409, body: Data(body.utf8)), now: now)
            #expect(answer == .stale(stored: sequence))
        }
    }

    @Test func `an answer that is no JSON, such as a proxy's, is known by its status`() {
        let response = Response(status: 502, body: Data("<html>".utf8))
        #expect(Answer(response, now: now) == .later(after: nil, Problem(status: 502)))
        #expect(Answer(Response(status: 302), now: now) == .refused(Problem(status: 302)))
    }

    @Test(
        arguments: [
            ("0", 0), (" 17 ", 17), ("Thu, 28 May 2026 20:27:40 GMT", 60),
            ("Thu, 28 May 2020 20:27:40 GMT", 0), ("soon", nil), ("-1", nil), ("", nil),
        ] as [(String, TimeInterval?)])
    func `Retry-After is seconds or a date`(_ value: String, _ seconds: TimeInterval?) {
        #expect(Answer.seconds(value, now: now) == seconds)
    }

    @Test func `a refused credential comes with the registrar's clock`() {
        let response = Response(status: 401, headers: ["Date": "Thu, 28 May 2026 20:27:40 GMT"])
        let refusal = CredentialRefusal(Problem(status: 401), date: now.addingTimeInterval(60))
        #expect(Answer(response, now: now) == .credentialRefused(refusal))
    }

    @Test func `a pause doubles up to the longest, and a Retry-After has a limit`() {
        let backoff = Backoff(first: 1, longest: 300, retryAfterMax: 3600)
        #expect((1...4).map { backoff.delay(failures: $0, random: 1) } == [1, 2, 4, 8])
        #expect(backoff.delay(failures: 500, random: 1) == 300)
        #expect(backoff.delay(failures: 3, random: 0) == 0)
        #expect(backoff.delay(retryAfter: 1e9, random: 0) == 3600)
    }
}
