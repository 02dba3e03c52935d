// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import Testing

@Suite struct `The identity of a push with a payload` {
    private let event = StableHash.event(
        topicSeed: StableHash.topicSeed("events"), partition: 3, offset: 7)

    @Test func `is the event's without a collapse identifier`() {
        let alert = PayloadIdentity(type: .alert, collapseID: nil, event: event)
        #expect(alert.coalescingKey == event.low | 1)
        // Sent again after a crash it replaces itself.
        #expect(alert.collapseID == Array(APNSID(hash: event).text.utf8))
        let background = PayloadIdentity(type: .background, collapseID: nil, event: event)
        #expect(background.coalescingKey == alert.coalescingKey)
        #expect(background.collapseID.isEmpty)
    }

    @Test func `is the collapse identifier's, whatever the event`() {
        let other = StableHash.event(
            topicSeed: StableHash.topicSeed("events"), partition: 3, offset: 8)
        let first = PayloadIdentity(type: .alert, collapseID: "score", event: event)
        #expect(first == PayloadIdentity(type: .alert, collapseID: "score", event: other))
        #expect(first.collapseID == Array("score".utf8))
        #expect(first.coalescingKey & 1 == 1)
        let differing = [
            PayloadIdentity(type: .background, collapseID: "score", event: event),
            PayloadIdentity(type: .alert, collapseID: "goal", event: event),
            PayloadIdentity(type: .alert, collapseID: nil, event: event),
        ]
        for push in differing { #expect(push.coalescingKey != first.coalescingKey) }
    }

    @Test func `survives being written down and read again`() {
        for given in [nil, "score"] {
            for type in [PushType.alert, .background] {
                let first = PayloadIdentity(type: type, collapseID: given, event: event)
                let written =
                    first.collapseID.isEmpty
                    ? nil : String(decoding: first.collapseID, as: UTF8.self)
                #expect(PayloadIdentity(type: type, collapseID: written, event: event) == first)
            }
        }
    }

    @Test func `tells events of other topics, partitions and offsets apart`() {
        let seeds = [StableHash.topicSeed("events"), StableHash.topicSeed("orders")]
        var hashes: Set<StableHash.Value> = []
        for seed in seeds {
            for partition in [0, 1] as [Int32] {
                for offset in [0, 1] as [Int64] {
                    hashes.insert(
                        StableHash.event(topicSeed: seed, partition: partition, offset: offset))
                }
            }
        }
        #expect(hashes.count == 8)
    }
}
