// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import Testing

@Suite struct `The identity of a push with a payload` {
    private let event = StableHash.event(
        topicSeed: StableHash.topicSeed("events"), partition: 3, offset: 7)

    private func identity(
        _ type: PushType, _ collapseID: String?, _ event: StableHash.Value, body: String = "{}"
    ) -> PayloadIdentity {
        PayloadIdentity(
            EventPayload(body: Array(body.utf8), type: type), collapseID: collapseID, event: event)
    }

    @Test func `a payload's identity is the event's without a collapse identifier`() {
        let alert = identity(.alert, nil, event)
        // Sent again after a crash it replaces itself.
        #expect(alert == identity(.alert, nil, event))
        #expect(alert.collapseID.count == 36 && alert.coalescingKey & 1 == 1)
        let background = identity(.background, nil, event)
        #expect(background.coalescingKey == alert.coalescingKey)
        #expect(background.collapseID.isEmpty)
    }

    @Test func `a payload's identity is the collapse identifier's, whatever the event`() {
        let other = StableHash.event(
            topicSeed: StableHash.topicSeed("events"), partition: 3, offset: 8)
        let first = identity(.alert, "score", event)
        #expect(first == identity(.alert, "score", other))
        #expect(first.collapseID == Array("score".utf8))
        #expect(first.coalescingKey & 1 == 1)
        let differing = [
            identity(.background, "score", event),
            identity(.alert, "goal", event),
            identity(.alert, nil, event),
        ]
        for push in differing { #expect(push.coalescingKey != first.coalescingKey) }
    }

    @Test func `a payload's identity differs for another event that stands in the same place`() {
        let (one, other) = (identity(.alert, nil, event), identity(.alert, nil, event, body: "[]"))
        #expect(one.coalescingKey != other.coalescingKey && one.collapseID != other.collapseID)
        let (named, same) = (identity(.alert, "c", event), identity(.alert, "c", event, body: "[]"))
        #expect(named == same)
    }

    @Test func `a payload's identity survives being written down and read again`() {
        for given in [nil, "score"] {
            for type in [PushType.alert, .background] {
                let first = identity(type, given, event)
                let written =
                    first.collapseID.isEmpty
                    ? nil : String(decoding: first.collapseID, as: UTF8.self)
                #expect(identity(type, written, event) == first)
            }
        }
    }

    @Test func `a payload's identity tells events of other topics, partitions and offsets apart`() {
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
