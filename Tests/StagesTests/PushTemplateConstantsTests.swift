// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Intake
internal import PushModel
internal import RecordFormats
internal import Testing

/// What a template's constant parts get wrong would make a dead letter of every record.
@Suite struct `The constants of a push template` {
    private typealias Source = PushTemplate.Source

    private static func binding(
        _ payload: [(String, Source)], type: PushType? = nil, classes: TokenClassSet = .all
    ) throws -> TopicBinding {
        var binding = TopicBinding(
            decode: .json, subject: try SubjectTemplate("order-{/id}"), classes: classes)
        binding.push.type = type
        binding.push.payload = try PushTemplate(
            .map(payload.map { (name: $0.0, value: $0.1) }))
        return binding
    }

    private static func aps(_ members: (String, Source)...) -> [(String, Source)] {
        [("aps", .map(members.map { (name: $0.0, value: $0.1) }))]
    }

    private static func activity(_ changes: [String: Source?]) -> [(String, Source)] {
        var members: [(name: String, value: Source)] = []
        let usual: [(String, Source)] = [
            ("timestamp", .text("{time}")), ("event", .text("start")),
            ("content-state", .map([("open", .text("{/open}"))])),
            ("attributes-type", .text("Door")), ("attributes", .map([])), ("alert", .text("x")),
        ]
        for (name, value) in usual where changes[name] == nil { members.append((name, value)) }
        for case let (name, value?) in changes { members.append((name, value)) }
        return [("aps", .map(members))]
    }

    private static let long = Source.text(String(repeating: "x", count: 5000))

    @Test(
        arguments: [
            ([("door", .text("{/id}"))], nil, "write push.type"),
            (Self.aps(("thread-id", .text("x"))), nil, "write push.type"),
            (Self.aps(("content-available", .literal("true"))), nil, "write push.type"),
            ([("aps", .text("x"))], .alert, "/aps: it must be a map"),
            (
                Self.aps(("content-available", .literal("1")), ("alert", .text("{/text}!"))),
                .background, "/aps/alert: a background push has none"
            ),
            (Self.aps(("badge", .literal("1"))), .background, "/aps/badge"),
            ([("door", .text("{/id}"))], .background, "content-available: 1"),
            ([("door", .text("{/id}"))], .alert, "an alert needs alert, badge or sound"),
            (Self.aps(("alert", .nothing)), .alert, "an alert needs alert, badge or sound"),
            (Self.aps(("alert", Self.long)), nil, "bytes, and APNs takes 4096 of type alert"),
            ([("text", Self.long), ("aps", .text("{/aps}"))], .alert, "APNs takes 4096"),
            ([("text", Self.long), ("aps", .text("{/aps}"))], nil, nil),
            ([("text", Self.long)], PushType(name: "voip"), nil),
            (
                Self.activity(["event": .text("begin")]), nil,
                "/aps/event: a Live Activity needs start"
            ),
            (Self.activity(["event": nil]), nil, "/aps/event"),
            (Self.activity(["timestamp": nil]), nil, "/aps/timestamp"),
            (Self.activity(["timestamp": .text("at {time}")]), nil, "/aps/timestamp"),
            (Self.activity(["timestamp": .literal("0")]), nil, "/aps/timestamp"),
            (Self.activity(["content-state": .list([])]), nil, "/aps/content-state"),
            (Self.activity(["content-state": nil]), .liveActivity, "/aps/content-state"),
            (
                Self.activity([
                    "event": .text("end"), "timestamp": .literal("7"), "content-state": .nothing,
                    "stale-date": .text("soon"),
                ]), nil, "/aps/stale-date"
            ),
            (Self.activity(["attributes-type": .literal("1")]), nil, "/aps/attributes-type"),
            (Self.activity(["attributes": nil]), nil, "/aps/attributes"),
            (Self.activity(["alert": nil]), nil, "/aps/alert"),
            (Self.activity(["stale-date": .text("soon")]), nil, "/aps/stale-date"),
        ] as [([(String, Source)], PushType?, String?)])
    func `a mistake in them is told at the start, with its place`(
        payload: [(String, PushTemplate.Source)], type: PushType?, words: String?
    ) throws {
        let problem = try Self.binding(payload, type: type).ownProblem
        guard let words else {
            #expect(problem == nil)
            return
        }
        let message = try #require(problem?.message)
        #expect(message.hasPrefix("push.payload: ") && message.contains(words), "\(message)")
    }

    /// A record decides: none of these may be refused at the start.
    @Test(
        arguments: [
            (Self.aps(("alert", .text("{/text}"))), nil),
            (Self.aps(("content-available", .text("{/silent}"))), nil),
            (
                Self.aps(
                    ("content-available", .literal("1")),
                    ("badge", .map([("$field", .text("/unread")), ("default", .nothing)]))),
                .background
            ),
            ([("aps", .text("{/aps}"))], nil), ([("door", .text("{/id}"))], PushType(name: "voip")),
            (Self.activity([:]), nil), (Self.activity(["event": .text("{/event}")]), nil),
            (Self.activity(["event": .text("update"), "attributes": nil, "alert": nil]), nil),
            (Self.activity(["event": .text("end"), "content-state": nil]), .liveActivity),
            (Self.activity(["event": .text("end"), "content-state": .nothing]), nil),
            (Self.activity(["timestamp": .literal("1795241520")]), nil),
            (
                Self.activity(["stale-date": .text("{/until}"), "relevance-score": .literal("7.5")]
                ), nil
            ),
        ] as [([(String, Source)], PushType?)])
    func `what a record may still make good is no mistake`(
        payload: [(String, PushTemplate.Source)], type: PushType?
    ) throws {
        #expect(try Self.binding(payload, type: type).ownProblem == nil)
    }

    @Test func `classes without that of the push are a mistake`() throws {
        let control = TokenClassSet(.control)
        let told = try Self.binding(Self.aps(("alert", .text("x"))), classes: control)
        let message = try #require(told.ownProblem?.message)
        #expect(message.hasPrefix("classes: device is not among them"))
        var bodyless = TopicBinding(
            decode: .json, subject: try SubjectTemplate("{/id}"), classes: control)
        bodyless.push.type = .background
        #expect(bodyless.ownProblem == .classes(.background))
        // The record may name others.
        bodyless.classesFrom = FieldPath("/classes")
        #expect(bodyless.ownProblem == nil)
        let unknown = try Self.binding(Self.aps(("alert", .text("{/text}"))), classes: control)
        #expect(unknown.ownProblem == nil)
    }

    @Test func `a payload for channels alone may be as large as a broadcast`() throws {
        let text = Source.text(String(repeating: "x", count: 4500))
        let large = Self.activity(["alert": text])
        #expect(try Self.binding(large).ownProblem?.message.contains("4096") == true)
        let channels = try Self.binding(large, classes: TokenClassSet(.channel))
        #expect(channels.ownProblem == nil)
    }
}
