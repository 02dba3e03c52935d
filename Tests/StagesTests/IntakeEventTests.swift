// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Intake
internal import PushModel
internal import RecordFormats
internal import Testing

@Suite struct `Events at intake` {
    @Test(arguments: [nil, []] as [[UInt8]?])
    func `a record without a value says that the subject in its key changed`(value: [UInt8]?) throws
    {
        let event = try decodeEvent(value)
        #expect(event.subject == "door-42")
        #expect(event.app == AppID(rawValue: 0))
        #expect(event.environment == nil)
        #expect(event.kinds.isEmpty)
        #expect(event.classes == .all)
        #expect(event.time == IntakeFixtures.now)
        #expect(event.life == .seconds(24 * 3600))
        #expect(event.payload == nil)
    }

    @Test func `the headers of a record without a value are not looked at`() throws {
        var decoder = try EventDecoder(
            bindings: [.standard, TopicBinding(decode: .key)], routing: IntakeFixtures.routing(),
            settings: EventSettings())
        for (binding, value) in [(0, nil), (1, nil), (1, Array("{".utf8))] as [(Int, [UInt8]?)] {
            try lending(Array("k".utf8)) { key in
                try lending(value) { value in
                    let record = EventRecord(
                        binding: binding, key: key, value: value, timestamp: IntakeFixtures.now)
                    _ = try decoder.decode(record, now: IntakeFixtures.now) { name in
                        Issue.record("asked for \(name)")
                        return nil
                    }
                }
            }
        }
    }

    @Test func `every field of an event is read`() throws {
        let event = try decodeEvent(
            #"""
            {"v":1,"id":"e1","subject":"door-7","time":"2026-11-21T12:00:10.500Z",
             "app":"com.example.Home","environment":"sandbox","kinds":["a","b"],
             "classes":["control","device"],"ttlSeconds":60,"priority":5,"collapseID":"c 1",
             "apnsExpiration":"deadline","payload":{"aps":{"alert":"é"},"x":[1]},"later":{}}
            """#)
        #expect(event.subject == "door-7")
        #expect(event.time == IntakeFixtures.now + .milliseconds(10_500))
        #expect(event.life == .milliseconds(70_500))
        #expect(event.environment == .development)
        #expect(event.kinds == ["a", "b"])
        #expect(event.classes == [TokenClassSet(.control), TokenClassSet(.device)])
        #expect(event.priority == 5)
        #expect(event.collapseID == "c 1")
        #expect(event.expiration == .deadline)
        #expect(event.payload == #"{"aps":{"alert":"é"},"x":[1]}"#)
        #expect(event.payloadType == .alert)
    }

    @Test(arguments: IntakeSamples.goodEvents)
    func `a well-formed event is read`(value: String) throws {
        _ = try decodeEvent(value)
    }

    @Test(arguments: IntakeSamples.badEvents)
    func `a malformed event is refused with its reason`(value: String, code: UnreadableCode) {
        #expect(refusal { _ = try decodeEvent(value) } == code)
    }

    @Test func `a refusal never quotes the record`() {
        #expect {
            _ = try decodeEvent(#"{"priority":"SECRET","SECRET":1}"#)
        } throws: { error in
            !"\(error)".contains("SECRET")
        }
    }

    // MARK: Subjects and apps

    @Test func `subjects have 1 to 256 bytes`() throws {
        let longest = String(repeating: "é", count: 128)
        #expect(try decodeEvent(nil, key: longest).subject == longest)
        #expect(try decodeEvent(#"{"subject":"\#(longest)"}"#).subject == longest)
        #expect(refusal { _ = try decodeEvent(nil, key: longest + "x") } == .invalidSubject)
        #expect(refusal { _ = try decodeEvent(#"{"subject":"\#(longest)x"}"#) } == .invalidField)
        #expect(refusal { _ = try decodeEvent(nil, key: nil) } == .missingSubject)
        #expect(refusal { _ = try decodeEvent(nil, key: "") } == .missingSubject)
    }

    @Test func `several apps need a name, in the event or in the binding`() throws {
        let apps = ["com.example.Home", "com.example.Car"]
        #expect(refusal { _ = try decodeEvent("{}", apps: apps) } == .missingApp)
        #expect(refusal { _ = try decodeEvent(nil, apps: apps) } == .missingApp)
        #expect(refusal { _ = try decodeEvent(#"{"app":"x"}"#, apps: apps) } == .unknownApp)
        let unknown = #expect(throws: UnreadableRecord.self) {
            _ = try decodeEvent(#"{"app":"x\n"}"#, apps: apps)
        }
        let words = "no credential serves app 'x\\u{a}': add it to apns.credentials"
        #expect(unknown?.message == words)
        let named = try decodeEvent(#"{"app":"com.example.Car"}"#, apps: apps)
        #expect(named.app == AppID(rawValue: 1))
        let binding = TopicBinding(decode: .json, app: "com.example.Car")
        #expect(try decodeEvent(nil, binding: binding, apps: apps).app == AppID(rawValue: 1))
        let home = try decodeEvent(#"{"app":"com.example.Home"}"#, binding: binding, apps: apps)
        #expect(home.app == AppID(rawValue: 0))
    }

    @Test func `an environment that no credential serves is refused`() throws {
        var routing = RoutingTable()
        routing.add(credential: "main", apps: ["a"], environments: [.production])
        var decoder = try EventDecoder(
            bindings: [.standard], routing: routing, settings: EventSettings())
        let code = refusal {
            try lending(Array(#"{"subject":"s","environment":"development"}"#.utf8)) { value in
                let record = EventRecord(
                    binding: 0, key: nil, value: value, timestamp: IntakeFixtures.now)
                _ = try decoder.decode(record, now: IntakeFixtures.now) { _ in nil }
            }
        }
        #expect(code == .unservedEnvironment)
    }

    @Test func `a whole kind is reloaded only where that is allowed`() throws {
        let value = #"{"app":"com.example.Home","kinds":["garage"]}"#
        #expect(refusal { _ = try decodeEvent(value, key: nil) } == .kindWideRefused)
        var settings = EventSettings()
        settings.allowKindWide = true
        let event = try decodeEvent(value, key: nil, settings: settings)
        #expect(event.subject.isEmpty)
        #expect(event.kinds == ["garage"])
        // A key is a subject; and neither a subject nor kinds is nothing to go by.
        #expect(try decodeEvent(value, key: "k", settings: settings).subject == "k")
        #expect(
            refusal { _ = try decodeEvent("{}", key: nil, settings: settings) } == .missingSubject)
    }

    // MARK: Installations

    @Test func `an event for an installation is read only where that is allowed`() throws {
        let value = #"{"installation":"6F1C","kinds":["garage"]}"#
        #expect(refusal { _ = try decodeEvent(value) } == .installationRefused)
        var settings = EventSettings()
        settings.allowInstallations = true
        // The key decides the partition alone.
        for key in [nil, "door-42"] {
            let event = try decodeEvent(value, key: key, settings: settings)
            #expect(event.installation == "6F1C" && event.kinds == ["garage"])
        }
        #expect(try decodeEvent("{}", settings: settings).installation == nil)
        let headers = [
            "ce_specversion": "1.0", "ce_id": "1", "ce_source": "/s", "ce_type": "t",
            "ce_pushinstallation": "6F1C",
        ]
        let cloud = TopicBinding(decode: .cloudevents)
        let event = try decodeEvent(
            nil, key: nil, headers: headers, binding: cloud, settings: settings)
        #expect(event.installation == "6F1C")
        #expect(
            refusal {
                _ = try decodeEvent(
                    nil, headers: headers.merging(["ce_subject": "s"]) { $1 }, binding: cloud,
                    settings: settings)
            } == .invalidSubject)
    }

    @Test(
        arguments: [
            (#"{"installation":"6F1C","subject":"s"}"#, .invalidSubject),
            (#"{"installation":"6F1C","all":true}"#, .invalidSubject),
            (#"{"installation":""}"#, .invalidField), (#"{"installation":"a/b"}"#, .invalidField),
            (#"{"installation":["6F1C"]}"#, .invalidField),
            (#"{"installation":"\#(String(repeating: "x", count: 129))"}"#, .invalidField),
        ] as [(String, UnreadableCode)])
    func `an event for an installation and for others, or for none, is refused`(
        value: String, code: UnreadableCode
    ) {
        var settings = EventSettings()
        settings.allowInstallations = true
        #expect(refusal { _ = try decodeEvent(value, settings: settings) } == code)
    }

    // MARK: Expiry

    @Test func `an event's life counts from the later of its time and the record's`() throws {
        let early = #"{"time":"2026-11-21T11:00:00Z","ttlSeconds":60}"#
        #expect(try decodeEvent(early).life == .seconds(60))
        let late = #"{"time":"2026-11-21T12:01:00Z","ttlSeconds":60}"#
        #expect(try decodeEvent(late).life == .seconds(120))
        #expect(try decodeEvent(early).time == IntakeFixtures.now + .seconds(-3600))
    }

    @Test func `an event's life is its own, else the binding's, else the setting's`() throws {
        let payload = #"{"payload":{"aps":{"alert":"x"}}}"#
        #expect(try decodeEvent(payload).life == .seconds(3600))
        #expect(try decodeEvent("{}").life == .seconds(24 * 3600))
        let binding = TopicBinding(decode: .json, ttl: .seconds(5), delay: .seconds(2))
        #expect(try decodeEvent(payload, binding: binding).life == .seconds(5))
        #expect(try decodeEvent(nil, binding: binding).life == .seconds(5))
        #expect(try decodeEvent(nil, binding: binding).delay == .seconds(2))
        #expect(try decodeEvent(#"{"ttlSeconds":9}"#, binding: binding).life == .seconds(9))
        let expired = #"{"expiresAt":"2026-11-21T11:59:59Z"}"#
        #expect(try decodeEvent(expired).life == .seconds(-1))
    }

    @Test func `no deadline is over 30 days away, whatever a clock says`() throws {
        let month = Duration.seconds(30 * 86_400)
        #expect(try decodeEvent(#"{"expiresAt":"9999-01-01T00:00:00Z"}"#).life == month)
        // One that is far ahead is passed over.
        #expect(try decodeEvent(#"{"time":"2099-01-01T00:00:00Z"}"#).life == .seconds(86_400))
        let skewed = WallTime(rfc3339: "2050-01-01T00:00:00Z")!
        #expect(try decodeEvent(nil, timestamp: skewed).life == month)
    }

    @Test func `a record without a timestamp counts from now`() throws {
        let none = WallTime(milliseconds: -1)
        #expect(try decodeEvent(nil, timestamp: none).life == .seconds(24 * 3600))
        #expect(try decodeEvent("{}", timestamp: none).time == IntakeFixtures.now)
    }

    // MARK: Payloads

    @Test func `a body may have 4096 bytes without its white space`() throws {
        func event(_ count: Int) -> String {
            let frame = #"{"aps":{"alert":""}}"#.utf8.count
            let filler = String(repeating: "x", count: count - frame)
            return #"{ "payload" : { "aps" : { "alert" : "\#(filler)" } } }"#
        }
        #expect(try decodeEvent(event(4096)).payload?.utf8.count == 4096)
        #expect(refusal { _ = try decodeEvent(event(4097)) } == .payloadTooLarge)
    }

    @Test func `records over the bound are refused unread`() {
        var settings = EventSettings()
        settings.recordBytesMax = 100
        let value = #"{"x":""# + String(repeating: "y", count: 100) + #""}"#
        #expect(refusal { _ = try decodeEvent(value, settings: settings) } == .recordTooLarge)
    }

    // MARK: Anything at all

    @Test(arguments: [11, 12, 13] as [UInt64])
    func `random bytes are read or refused, within bounds`(seed: UInt64) throws {
        var random = IntakeRandom(state: seed)
        let bindings = [
            .standard, TopicBinding(decode: .cloudevents),
            TopicBinding(decode: .json, subject: try SubjectTemplate("a-{/subject}-{/kinds/0}")),
        ]
        var decoder = try EventDecoder(
            bindings: bindings, routing: IntakeFixtures.routing(), settings: EventSettings())
        var outcomes = [true: 0, false: 0]
        for round in 0..<1500 {
            let sample = IntakeSamples.goodEvents.randomElement(using: &random)!
            let value = random.damaged(sample)
            let type = Array("application/cloudevents+json".utf8)
            lending(type) { type in
                lending(value) { value in
                    let record = EventRecord(
                        binding: round % 3, key: value, value: value, timestamp: IntakeFixtures.now)
                    let event = try? decoder.decode(record, now: IntakeFixtures.now) { name in
                        name == "content-type" && round % 3 == 1 ? type : nil
                    }
                    outcomes[event != nil, default: 0] += 1
                    guard let event else { return }
                    #expect((1...256).contains(event.subject.count), "seed \(seed)")
                    #expect(event.kinds.count <= 64)
                    #expect((event.payload?.body.count ?? 0) <= 4096)
                    #expect((event.collapseID?.utf8.count ?? 1) <= 64)
                }
            }
        }
        #expect(outcomes[true]! > 50 && outcomes[false]! > 50)
    }

    @Test func `a shard is left out by whoever sends the whole event itself`() throws {
        let shard =
            #"{"shard":{"index":3,"of":4,"topic":"orders","partition":7,"offset":12345}}"#
        #expect(try decodeEvent(shard).subject == "door-42")
        var settings = EventSettings()
        settings.leavesShards = true
        #expect(throws: RecordLeftOut.self) { try decodeEvent(shard, settings: settings) }
        #expect(try decodeEvent("{}", settings: settings).subject == "door-42")
    }
}
