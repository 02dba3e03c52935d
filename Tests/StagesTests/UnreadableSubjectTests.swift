// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Intake
internal import PushModel
internal import RecordFormats
internal import Testing

/// What the dead letter of a record that cannot be read names as its subject.
@Suite struct `The subject of an unreadable record` {
    private static let apps = ["com.example.Home", "com.example.Car"]
    private static let cloudEvent = [
        "ce_specversion": "1.0", "ce_id": "e1", "ce_source": "/s", "ce_type": "t",
    ]

    private func subject(
        key: String? = "door", _ value: String?, headers: [String: String] = [:],
        binding: TopicBinding = .standard
    ) throws -> String {
        var decoder = try EventDecoder(
            bindings: [binding], routing: IntakeFixtures.routing(Self.apps),
            settings: EventSettings())
        let bytes = value.map { Array($0.utf8) }
        #expect(throws: UnreadableRecord.self) {
            try decodeEvent(bytes, key: key, headers: headers, binding: binding, apps: Self.apps)
        }
        let subject = lending(key.map { Array($0.utf8) }) { key in
            lending(bytes) { value in
                lendingHeaders(headers) { lookup in
                    decoder.subject(
                        ofUnreadable: EventRecord(
                            binding: 0, key: key, value: value, timestamp: IntakeFixtures.now),
                        header: lookup)
                }
            }
        }
        return String(decoding: subject, as: UTF8.self)
    }

    @Test func `where no app is named it is what the event names, else the key`() throws {
        #expect(try subject(nil) == "door")
        #expect(try subject("{}") == "door")
        #expect(try subject(#"{"subject":null}"#) == "door")
        #expect(try subject(#"{"subject":"lamp"}"#) == "lamp")
        #expect(try subject(#"{"kinds":["k"]}"#, binding: TopicBinding(decode: .key)) == "door")
    }

    @Test func `of a CloudEvent it is its own, else the key`() throws {
        for binding in [.standard, TopicBinding(decode: .cloudevents)] as [TopicBinding] {
            #expect(try subject("", headers: Self.cloudEvent, binding: binding) == "door")
            let named = Self.cloudEvent.merging(["ce_subject": "lamp"]) { $1 }
            #expect(try subject("", headers: named, binding: binding) == "lamp")
        }
        let envelope =
            #"{"specversion":"1.0","id":"e1","source":"/s","type":"t","subject":"lamp"}"#
        #expect(try subject(envelope) == "lamp")
    }

    @Test func `a template composes it`() throws {
        let binding = TopicBinding(decode: .json, subject: try SubjectTemplate("order-{/id}"))
        #expect(try subject(#"{"id":7}"#, binding: binding) == "order-7")
        #expect(try subject("{}", binding: binding) == "")
    }

    @Test func `where it cannot be told there is none`() throws {
        #expect(try subject("no JSON") == "")
        #expect(try subject(#"{"subject":7}"#) == "")
        #expect(try subject(key: nil, "{}") == "")
        #expect(try subject(key: String(repeating: "x", count: 257), nil) == "")
    }
}
