// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Intake
internal import PushModel
internal import RecordFormats
internal import Testing

@testable internal import Worker
@testable internal import lamplighter

@Suite struct `The trial of a record before somebody writes it` {
    private static let now = WallTime(rfc3339: "2026-11-21T06:12:00.123Z")!

    private func trial(_ yaml: String = "") throws -> RecordTrial {
        let text = "apns: {credentials: {home: {environments: [production]}}}\n" + yaml
        return RecordTrial(WorkerPlan(try configuration(text)), now: Self.now)
    }

    /// What it is refused with; nil where it is not.
    private func refusal(_ body: () throws(UselessRecord) -> Void) -> UselessRecord? {
        do throws(UselessRecord) {
            try body()
            return nil
        } catch {
            return error
        }
    }

    // MARK: Events

    private static let foreign = """
        kafka:
          events:
            another.team: {decode: json, subject: "order-{/orderId}"}
            doors: {decode: key, subject: "door-{key}"}
            zebra: {decode: json}
        """

    @Test func `an event goes to the topic that is named, the only one, or ours`() throws {
        #expect(try trial().topicOfEvents(named: nil) == "lamplighter.events")
        #expect(
            try trial("kafka: {events: {orders: {}}}").topicOfEvents(named: nil) == "orders")
        let several = try trial("kafka: {events: {a: {}, lamplighter.events: {}}}")
        #expect(try several.topicOfEvents(named: nil) == "lamplighter.events")
        #expect(try several.topicOfEvents(named: "a") == "a")

        let foreign = try trial(Self.foreign)
        let unnamed = refusal { () throws(UselessRecord) in
            _ = try foreign.topicOfEvents(named: nil)
        }
        #expect(unnamed?.message.hasSuffix("name one of another.team, doors, zebra") == true)
        let unknown = refusal { () throws(UselessRecord) in
            _ = try foreign.topicOfEvents(named: "zebras")
        }
        #expect(unknown?.message.hasSuffix("the nearest there is 'zebra'") == true)
    }

    @Test(arguments: [("", "no key"), (String(repeating: "ü", count: 150), "at most 256 bytes")])
    func `a subject that no worker reads is refused`(_ subject: String, _ words: String) throws {
        let trial = try trial()
        for draft in [nil, EventDraft()] {
            let refused = refusal { () throws(UselessRecord) in
                _ = try trial.event(draft, key: subject, topic: "lamplighter.events")
            }
            #expect(refused?.message.contains(words) == true, "\(String(describing: refused))")
            #expect(refused?.lacksConfiguration == false)
        }
    }

    @Test func `an event of an app or an environment that nobody serves is refused`() throws {
        let trial = try trial()
        var draft = EventDraft()
        draft.subject = "door-1"
        draft.app = "com.example.Garden"
        func read() throws(UselessRecord) -> RecordTrial.ReadEvent {
            try trial.event(draft, key: "door-1", topic: "lamplighter.events")
        }
        let unknown = refusal { () throws(UselessRecord) in _ = try read() }
        #expect(unknown?.lacksConfiguration == true)
        #expect(unknown?.message.contains("apns.credentials") == true)
        draft.app = "com.example.Home"
        draft.environment = .development
        #expect(refusal { () throws(UselessRecord) in _ = try read() }?.lacksConfiguration == true)
        draft.environment = .production
        let read = try read()
        #expect(read.subject == "door-1" && read.app == "com.example.Home")
        #expect(read.value == EventEncoder.value(draft))
    }

    @Test func `a topic of another format takes what its binding reads, and no more`() throws {
        let trial = try trial(Self.foreign)
        let door = try trial.event(nil, key: "7", topic: "doors")
        #expect(door.subject == "door-7" && door.value == nil)
        let optioned = refusal { () throws(UselessRecord) in
            _ = try trial.event(EventDraft(), key: "7", topic: "doors")
        }
        #expect(optioned?.message.contains("decode: key") == true)
        let order = refusal { () throws(UselessRecord) in
            _ = try trial.event(nil, key: "7", topic: "another.team")
        }
        #expect(order?.message.hasPrefix("no worker could read it") == true)
    }

    // MARK: Registrations

    private func notes(
        _ targets: String, _ yaml: String = "", app: String = "com.example.Home"
    ) throws -> Result<[String], UselessRecord> {
        let trial = try trial(yaml)
        let key = Array("production/\(app)/6F1C/GarageControls".utf8)
        let value = Array(#"{"v":1,"targets":[\#(targets)]}"#.utf8)
        do throws(UselessRecord) {
            return .success(try trial.registration(key: key, value: value))
        } catch {
            return .failure(error)
        }
    }

    @Test(arguments: [
        (#"{"class":"control","token":"00","shows":[{"kind":"k","subjects":["s"]}]}"#, []),
        (
            #"{"class":"device","token":"00","onChange":"background","shows":[{"subjects":["s"]}]}"#,
            []
        ),
        (#"{"class":"control","shows":[{"kind":"k","subjects":["s"]}]}"#, ["no token yet"]),
        (
            #"{"class":"control","token":"00","shows":[{"kind":"k"}]}"#,
            ["intake.allowKindWide is off"]
        ),
        (#"{"class":"voip","token":"00","shows":[{"subjects":["s"]}]}"#, []),
        (
            #"{"class":"liveActivity","token":"00","pushToStart":true,"shows":[{"subjects":["s"]}]}"#,
            []
        ),
        ("", ["nothing is left"]),
        (
            #"{"class":"control","token":"00","a":1,"shows":[{"subject":1,"subjects":["s"]}]}"#,
            [
                "targets[0].a is read by nobody in this version",
                "targets[0].shows[0].subject is read by nobody in this version; the nearest that "
                    + "is read is subjects",
            ]
        ),
    ])
    func `a registration is taken, and what it lacks is told`(
        _ targets: String, _ words: [String]
    ) throws {
        let notes = try notes(targets).get()
        #expect(notes.count == words.count)
        for (note, word) in zip(notes, words) { #expect(note.contains(word)) }
    }

    @Test(arguments: [
        (#"{"class":"control","token":"00"}"#, "targets[0] shows nothing"),
        (
            #"{"class":"control","token":"00","shows":[{"subjects":[]}]}"#,
            "targets[0] shows nothing"
        ),
        (
            #"{"class":"control","token":"00","onChange":"background","shows":[{"subjects":["s"]}]}"#,
            "targets[0]: onChange is for classes device and location alone"
        ),
        (
            #"{"class":"device","token":"00","pushToStart":true,"shows":[{"subjects":["s"]}]}"#,
            "targets[0]: pushToStart is for class liveActivity alone"
        ),
        (
            #"{"class":"device","token":"00","onChange":"alert","shows":[{"subjects":["s"]}]}"#,
            "onChange can only be background"
        ),
        (#"{"class":"watch","token":"00","shows":[{"subjects":["s"]}]}"#, "'watch' is no class"),
        (#"{"class":"control","token":"0","shows":[{"subjects":["s"]}]}"#, "token"),
    ])
    func `a registration that a worker passes over is refused`(
        _ targets: String, _ words: String
    ) throws {
        let error = #expect(throws: UselessRecord.self) { try notes(targets).get() }
        #expect(error?.message.contains(words) == true, "\(String(describing: error))")
        #expect(error?.lacksConfiguration == false)
    }

    @Test func `a registration of an app that nobody serves is refused`() throws {
        let error = #expect(throws: UselessRecord.self) {
            try notes("", app: "com.example.Garden").get()
        }
        #expect(error?.lacksConfiguration == true)
    }

    @Test func `a kind without a subject is enough where events for whole kinds are allowed`()
        throws
    {
        let target = #"{"class":"control","token":"00","shows":[{"kind":"k"}]}"#
        #expect(try notes(target, "intake: {allowKindWide: true}").get().isEmpty)
    }

    @Test func `a token alone is enough where events for installations are allowed`() throws {
        let target = #"{"class":"device","token":"00"}"#
        #expect(throws: UselessRecord.self) { try notes(target).get() }
        #expect(try notes(target, "intake: {allowInstallations: true}").get().isEmpty)
        // A broadcast would reach other installations, too.
        let channel = #"{"class":"channel","token":"dHN0LXNyY2gtY2hubA=="}"#
        #expect(throws: UselessRecord.self) {
            try notes(channel, "intake: {allowInstallations: true}").get()
        }
    }
}
