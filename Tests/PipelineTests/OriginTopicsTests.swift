// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Testing

@testable internal import Pipeline

@Suite struct `Topics of origin` {
    @Test func `the topics that events came from are those subscribed and 256 more`() {
        var topics = OriginTopics(["a", "b"])
        let strangers = (0..<256).map { topics.number(of: "former-\($0)") }
        #expect(strangers == (2..<258).map { UInt16($0) })
        let oneMore = topics.number(of: "hostile")
        #expect(oneMore == nil)
        let known = ["b", "former-255"].map { topics.number(of: $0) }
        #expect(known == [1, 257])
        #expect(topics.names.count == 258 && topics.seeds.count == 258)
    }
}
