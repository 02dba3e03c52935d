// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Intake
internal import PushModel
internal import RecordFormats
internal import Testing

/// What is read of an event so that it can be found in other systems.
@Suite struct `The correlation of events` {
    private static let traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    private static let other = "00-11112222333344445555666677778888-00f067aa0ba902b7-00"
    private static let both = Correlation(id: "e1", traceparent: traceparent)
    private static let cloudEvent = [
        "ce_specversion": "1.0", "ce_id": "e1", "ce_source": "/s", "ce_type": "t",
        "ce_subject": "door",
    ]

    @Test func `an event of ours has its id, and the header's traceparent`() throws {
        let event = try decodeEvent(#"{"id":"e1"}"#, headers: ["traceparent": Self.traceparent])
        #expect(event.correlation == Self.both)
        #expect(try decodeEvent("{}").correlation == .none)
    }

    @Test
    func `a CloudEvent in headers has its id, and the header's traceparent or its own`() throws {
        var headers = Self.cloudEvent
        #expect(
            try decodeEvent("", headers: headers, binding: TopicBinding(decode: .cloudevents))
                .correlation == Correlation(id: "e1", traceparent: nil))
        headers["ce_traceparent"] = Self.traceparent
        for binding in [TopicBinding(decode: .cloudevents), .standard] {
            let event = try decodeEvent("{}", headers: headers, binding: binding)
            #expect(event.correlation == Self.both)
        }
        headers["ce_traceparent"] = Self.other
        headers["traceparent"] = Self.traceparent
        let event = try decodeEvent("{}", headers: headers)
        #expect(event.correlation == Self.both)
    }

    @Test func `a CloudEvent in an envelope has its id, and the header's traceparent or its own`()
        throws
    {
        func envelope(_ traceparent: String) -> String {
            #"{"specversion":"1.0","id":"e1","source":"/s","type":"t","subject":"door","#
                + #""traceparent":\#(traceparent)}"#
        }
        let event = try decodeEvent(envelope("\"\(Self.traceparent)\""))
        #expect(event.correlation == Self.both)
        let twice = try decodeEvent(
            envelope("\"\(Self.other)\""), headers: ["traceparent": Self.traceparent])
        #expect(twice.correlation == Self.both)
        // The event is good without it.
        #expect(try decodeEvent(envelope("7")).correlation.traceparent == nil)
        #expect(try decodeEvent(envelope("\"x\"")).correlation.traceparent == nil)
    }

    @Test func `the traceparent of a record whose value is not read is looked for if asked for`()
        throws
    {
        var settings = EventSettings()
        settings.readsTraceparent = true
        for binding in [
            .standard, TopicBinding(decode: .key),
            TopicBinding(decode: .key, subject: try SubjectTemplate("{key}-1")),
        ] as [TopicBinding] {
            let headers = ["traceparent": Self.traceparent]
            let read = try decodeEvent(
                nil, headers: headers, binding: binding, settings: settings)
            #expect(read.correlation == Correlation(id: nil, traceparent: Self.traceparent))
            #expect(
                try decodeEvent(nil, headers: headers, binding: binding).correlation == .none)
        }
    }

    @Test func `a name too long to be kept is left out, and the event is good`() throws {
        var headers = Self.cloudEvent
        headers["ce_id"] = String(repeating: "x", count: 257)
        #expect(try decodeEvent("{}", headers: headers).correlation == .none)
        headers["ce_id"] = String(repeating: "x", count: 256)
        #expect(try decodeEvent("{}", headers: headers).correlation.id?.count == 256)
    }

    @Test(
        arguments: [
            (#"{"id":"e1","priority":7}"#, [:], both),
            (#"{"id":"e1","v":2}"#, [:], both),
            (#"{"id":7}"#, [:], Correlation(id: nil, traceparent: traceparent)),
            ("no JSON", [:], Correlation(id: nil, traceparent: traceparent)),
            ("no JSON", ["ce_id": "e1"], both),
            (
                #"{"specversion":"1.0","id":"e1","traceparent":"\#(other)"}"#, ["traceparent": ""],
                Correlation(id: "e1", traceparent: nil)
            ),
        ] as [(String, [String: String], Correlation)])
    func `the correlation of a record that cannot be read is found where it can be`(
        value: String, headers: [String: String], expected: Correlation
    ) throws {
        var decoder = try EventDecoder(
            bindings: [.standard], routing: IntakeFixtures.routing(), settings: EventSettings())
        let headers = ["traceparent": Self.traceparent].merging(headers) { $1 }
        #expect(throws: UnreadableRecord.self) { try decodeEvent(value, headers: headers) }
        let found = lending(Array("k".utf8)) { key in
            lending(Array(value.utf8)) { value in
                lendingHeaders(headers) { lookup in
                    decoder.correlation(
                        of: EventRecord(
                            binding: 0, key: key, value: value, timestamp: IntakeFixtures.now),
                        header: lookup)
                }
            }
        }
        #expect(found == expected)
    }

    /// A header may be of any bytes, and what repairs them makes them longer.
    @Test(arguments: [[], [0xFF], [0x00, 0x1B, 0x7F], Array(repeating: 0xFF, count: 72)])
    func `a dead letter takes of a later traceparent what this version knows`(tail: [UInt8]) throws
    {
        let later = Array("cc".utf8) + Self.traceparent.utf8.dropFirst(2) + [0x2D] + tail
        let id = Array("\u{1}\u{7F}\n".utf8)
        var written = letter()
        written.correlation = lending(id) { id in
            lending(later) { Correlation(checking: id, traceparent: $0) }
        }
        #expect(written.correlation.traceparent == Self.traceparent)
        #expect(written.correlation.id == "\u{1}\u{7F}\n")
        let value = DeadLetterEncoder.value(written, eventBytesMax: 1000)
        var decoder = DeadLetterDecoder()
        let read = try lending(value) { try decoder.letter($0) }
        #expect(read.isSame(as: written))
    }
}
