// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Intake
internal import PushModel
internal import RecordFormats
internal import Testing

@Suite struct `A push template` {
    private typealias Source = PushTemplate.Source

    private static func binding(
        _ aps: [(String, PushTemplate.Source)], _ beside: [(String, PushTemplate.Source)] = [],
        type: PushType? = nil
    ) throws -> TopicBinding {
        var binding = TopicBinding(decode: .json, subject: try SubjectTemplate("order-{/id}"))
        binding.push.type = type
        binding.push.payload = try PushTemplate(
            .map(
                [(name: "aps", value: Source.map(aps.map { (name: $0.0, value: $0.1) }))]
                    + beside.map { (name: $0.0, value: $0.1) }))
        return binding
    }

    @Test func `it is filled in from fields, which keep their types`() throws {
        let binding = try Self.binding(
            [
                (
                    "alert",
                    .map([
                        ("title-loc-key", .text("ORDER")),
                        ("loc-args", .list([.text("{/id}"), .text("{/total}")])),
                    ])
                ),
                ("badge", .text("{/unread}")), ("sound", .text("default")),
                ("thread-id", .text("order-{/id}")), ("mutable-content", .literal("1")),
            ],
            [
                ("open", .text("{/open}")), ("lines", .text("{/lines}")), ("at", .text("{time}")),
                ("key", .text("{key}")),
            ])
        let event = try decodeEvent(
            #"{"id":7,"total":1.5,"unread":3,"open":true,"lines":[{"sku":"a"}]}"#, key: "k",
            binding: binding)
        #expect(event.payloadType == .alert && event.subject == "order-7")
        #expect(
            event.payload
                == #"{"aps":{"alert":{"title-loc-key":"ORDER","loc-args":[7,1.5]},"badge":3,"#
                + #""sound":"default","thread-id":"order-7","mutable-content":1},"open":true,"#
                + #""lines":[{"sku":"a"}],"at":\#(IntakeFixtures.now.seconds),"key":"k"}"#)
        #expect(event.life == .seconds(3600))
    }

    @Test(arguments: [
        #"quote \" and \\ and \u0000 and \n"#, #"\"},\"aps\":{\"alert\":\"other"#, "é 中 \u{1F512}",
    ])
    func `whatever a field holds, the result is JSON with that text in it`(text: String) throws {
        let binding = try Self.binding([("alert", .text("<{/text}>")), ("sound", .text("{/text}"))])
        let event = try decodeEvent(#"{"id":1,"text":"\#(text)"}"#, binding: binding)
        let parsed = try JSON.parsed(try #require(event.payload))
        let original = try JSON.parsed(#"{"id":1,"text":"\#(text)"}"#)
        guard case .string(let expected)? = original.object?["text"] else {
            Issue.record("no text")
            return
        }
        let aps = parsed.object?["aps"]?.object
        #expect(aps?["alert"] == .string("<\(expected)>") && aps?["sound"] == .string(expected))
        #expect(parsed.object?.count == 1)
    }

    @Test func `a default stands for a field that is missing, or leaves the member out`() throws {
        let binding = try Self.binding(
            [
                ("alert", .text("x")),
                (
                    "badge",
                    .map([
                        ("$field", .text("/unread")), ("type", .text("integer")),
                        ("default", .literal("0")),
                    ])
                ),
                ("sound", .map([("$field", .text("/sound")), ("default", .nothing)])),
            ])
        #expect(
            try decodeEvent(#"{"id":1}"#, binding: binding).payload
                == #"{"aps":{"alert":"x","badge":0}}"#)
        #expect(
            try decodeEvent(#"{"id":1,"unread":4,"sound":"s"}"#, binding: binding).payload
                == #"{"aps":{"alert":"x","badge":4,"sound":"s"}}"#)
        #expect(
            refusal { _ = try decodeEvent(#"{"id":1,"unread":"4"}"#, binding: binding) }
                == .invalidField)
    }

    @Test func `a field that is missing without a default is a dead letter or skipped`() throws {
        var binding = try Self.binding([("alert", .text("{/text}"))])
        #expect(refusal { _ = try decodeEvent(#"{"id":1}"#, binding: binding) } == .missingField)
        binding.missing = .skip
        #expect(throws: RecordLeftOut.self) { try decodeEvent(#"{"id":1}"#, binding: binding) }
    }

    @Test func `it makes a Live Activity's state and a background push's data`() throws {
        let activity = try Self.binding(
            [
                ("timestamp", .text("{time}")), ("event", .text("update")),
                ("content-state", .text("{/state}")),
            ])
        let event = try decodeEvent(#"{"id":1,"state":{"open":true}}"#, binding: activity)
        #expect(event.payloadType == .liveActivity)
        let wrong = refusal { _ = try decodeEvent(#"{"id":1,"state":5}"#, binding: activity) }
        #expect(wrong == .invalidPayload)
        let data = try Self.binding(
            [("content-available", .literal("1"))], [("order", .text("{/id}"))])
        #expect(try decodeEvent(#"{"id":1}"#, binding: data).payloadType == .background)
    }

    @Test func `a payload that is too large is one dead letter`() throws {
        let binding = try Self.binding([("alert", .text("{/text}"))])
        let text = String(repeating: "x", count: 5000)
        let code = refusal { _ = try decodeEvent(#"{"id":1,"text":"\#(text)"}"#, binding: binding) }
        #expect(code == .payloadTooLarge)
    }

    @Test(arguments: [
        ("content-state", UInt8(1)), ("content-available", 10),
    ])
    func `a priority that its push type has not is a mistake, whoever tells the type`(
        telling: String, priority: UInt8
    ) throws {
        let demand = telling == "content-state" ? "a Live Activity's push has" : "5 or 1, never 10"
        var told = try Self.binding(
            [
                ("timestamp", .text("{time}")), ("event", .text("update")),
                (telling, telling == "content-state" ? .text("{/state}") : .literal("1")),
            ])
        told.push.priority = priority
        // Of the field alone, no more is known than that it is there.
        let record = #"{"id":1,"state":{"open":true}}"#
        if telling == "content-state" {
            #expect(told.ownProblem == nil)
            #expect(
                refusal { _ = try decodeEvent(record, binding: told) } == .invalidPriority)
            told.push.payload = try PushTemplate(
                .map([
                    (
                        "aps",
                        .map([
                            ("timestamp", .text("{time}")), ("event", .text("update")),
                            ("content-state", .map([("open", .text("{/open}"))])),
                        ])
                    )
                ]))
        }
        #expect(told.ownProblem?.message.contains("push: priority: ") == true)
        #expect(told.ownProblem?.message.contains(demand) == true)
        told.push.priority = 5
        #expect(told.ownProblem == nil)
    }

    @Test func `its collapse identifier is made as a subject is`() throws {
        var binding = try Self.binding([("alert", .text("x"))])
        binding.push.collapseID = try SubjectTemplate("order-{/id}")
        binding.push.priority = 5
        let event = try decodeEvent(#"{"id":1}"#, binding: binding)
        #expect(event.collapseID == "order-1" && event.priority == 5)
        let long = String(repeating: "7", count: 70)
        #expect(
            refusal { _ = try decodeEvent(#"{"id":"\#(long)"}"#, binding: binding) }
                == .invalidField)
    }

    @Test(
        arguments: [
            (Source.text("{/a"), "brace"), (.text("a}"), "brace"),
            (.text("{id}"), "no JSON pointer"),
            (.map([("$field", .text("x"))]), "no JSON pointer"),
            (.map([("$field", .text("/x")), ("typ", .text("integer"))]), "type and default alone"),
            (.map([("$field", .text("/x")), ("type", .text("int"))]), "type is one of"),
            (
                .map([
                    ("$field", .text("/u")), ("type", .text("integer")), ("default", .text("many")),
                ]), #"the default "many" is not of type integer"#
            ),
            (
                .map([
                    ("$field", .text("/u")), ("type", .text("boolean")), ("default", .literal("1")),
                ]), "not of type boolean"
            ),
            (
                .map([("$field", .text("/u")), ("type", .text("object")), ("default", .list([]))]),
                "not of type object"
            ),
        ] as [(PushTemplate.Source, String)])
    func `a mistake in it is told with its place`(source: PushTemplate.Source, words: String) {
        let error = #expect(throws: PushTemplateError.self) {
            try PushTemplate(.map([("aps", .map([("alert", source)]))]))
        }
        #expect(error?.message.contains(words) == true && error?.place == "/aps/alert")
    }

    @Test func `braces are written twice where they are meant`() throws {
        let binding = try Self.binding([("alert", .text("{{{/id}}}"))])
        #expect(
            try decodeEvent(#"{"id":1}"#, binding: binding).payload == #"{"aps":{"alert":"{1}"}}"#)
    }
}
