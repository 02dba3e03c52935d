// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Foundation
import Testing

@testable import LamplighterClientCore

@Suite struct `What a token shows` {
    @Test func `leaves out a kind without subjects, and keeps the token`() throws {
        let shows = [Shown(kind: "door", subjects: []), Shown(kind: "lamp", subjects: ["lamp-1"])]
        #expect(shows.withSubjects() == [Shown(kind: "lamp", subjects: ["lamp-1"])])
        let target = Target(token: Data([1, 2]), shows: [shows[0]].withSubjects())
        let encoded = try JSONSerialization.jsonObject(with: JSONEncoder().encode(target))
        let members = try #require(encoded as? [String: Any])
        #expect(members["token"] as? String == "0102")
        #expect((members["shows"] as? [Any])?.isEmpty == true)
    }
}
