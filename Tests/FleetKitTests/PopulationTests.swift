// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import PushModel
import Testing

@testable import FleetKit

@Suite struct `A population` {
    @Test func `a population gives no token to two installations for long, and takes none back`() {
        var random = SplitMix64(seed: 1)
        var population = Population(installations: 30)
        var tokenSets: [Int?] = Array(0..<30)
        var sorts: Set<String> = []
        for _ in 0..<1000 {
            let changes = population.change(using: &random)
            sorts.insert(changes.count == 2 ? "swap" : changes[0].tokenSet == nil ? "go" : "come")
            for change in changes { tokenSets[change.installation] = change.tokenSet }
            let held = tokenSets.compactMap(\.self)
            #expect(Set(held).count == held.count)
        }
        #expect(sorts == ["swap", "go", "come"])
        #expect(tokenSets.contains { $0 == nil })
    }
}

@Suite struct `An emitted event` {
    private func line(_ sort: EmittedEvent.Sort) -> String {
        EmittedEvent(t: 5, subject: 0, sort: sort)
            .line(topic: "events", partition: 3, offset: 9, subject: "door-0")
    }

    @Test func `an emitted event is logged as the checker and the view read it`() throws {
        let plain = line(.plain)
        #expect(
            plain == #"{"t":5,"topic":"events","partition":3,"offset":9,"#
                + #""app":"com.example.Home","subject":"door-0"}"# + "\n")
        let seen = try #require(LoggedEvent(Array(plain.utf8.dropLast())[...]))
        #expect(seen.t == 5)
        #expect(seen.subject == "door-0")
        #expect(line(.unreadable).hasSuffix(#""door-0","unreadable":true}"# + "\n"))
        #expect(
            line(.shortLived(until: 7)).hasSuffix(#""door-0","expiresAt":7000000}"# + "\n"))
    }

    @Test func `an emitted event says how long it is worth something, where that is short`() {
        func text(_ sort: EmittedEvent.Sort) -> String? {
            EmittedEvent(t: 5, subject: 0, sort: sort).value(subject: "door-0")
                .map { String(decoding: $0, as: UTF8.self) }
        }
        #expect(text(.plain) == nil)
        #expect(
            text(.shortLived(until: 1500))
                == #"{"v":1,"subject":"door-0","expiresAt":"1970-01-01T00:00:01.500Z"}"#)
    }
}
