// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Intake
internal import PushModel
internal import RecordFormats
internal import Testing

@Suite struct `Topic bindings` {
    @Test func `a template takes the subject from a document as it is`() throws {
        let binding = TopicBinding(
            decode: .json,
            subject: try SubjectTemplate("order-{/order/id}:{/line/0}@{header:region}/{key}"))
        // priority and v would be refused in an event of ours; here they are the producer's.
        let value = #"{"v":9,"priority":"high","order":{"id":42},"line":["é"]}"#
        let event = try decodeEvent(value, key: "k", headers: ["region": "eu"], binding: binding)
        #expect(event.subject == "order-42:é@eu/k")
        #expect(event.priority == nil)
    }

    @Test func `a template makes the installation that a record is for`() throws {
        var binding = TopicBinding(decode: .json)
        binding.installation = try SubjectTemplate("{/device}")
        #expect(binding.ownProblem == nil && !binding.holdsOwnEvents)
        var settings = EventSettings()
        let value = #"{"device":"6F1C"}"#
        #expect(
            refusal { _ = try decodeEvent(value, binding: binding, settings: settings) }
                == .installationRefused)
        settings.allowInstallations = true
        let event = try decodeEvent(value, key: "k", binding: binding, settings: settings)
        #expect(event.installation == "6F1C")
        for (value, code) in [(#"{"device":"a/b"}"#, .invalidField), ("{}", .missingSubject)]
            as [(String, UnreadableCode)]
        {
            #expect(
                refusal { _ = try decodeEvent(value, binding: binding, settings: settings) } == code
            )
        }
        var keyed = TopicBinding(decode: .key)
        keyed.installation = try SubjectTemplate("{key}")
        #expect(
            try decodeEvent(nil, key: "6F1C", binding: keyed, settings: settings).installation
                == "6F1C")
        binding.subject = try SubjectTemplate("{key}")
        #expect(binding.ownProblem == .installationAndSubject)
        keyed.decode = .cloudevents
        #expect(keyed.ownProblem == .noFields("installation"))
    }

    @Test(arguments: [
        #"{}"#, #"{"id":null}"#, #"{"id":true}"#, #"{"id":1.5}"#, #"{"id":{}}"#, #"{"id":""}"#,
    ])
    func `a place that holds no name is refused`(value: String) throws {
        let binding = TopicBinding(decode: .json, subject: try SubjectTemplate("x-{/id}"))
        #expect(refusal { _ = try decodeEvent(value, binding: binding) } == .missingSubject)
    }

    @Test func `a template that does not fit the record is refused`() throws {
        let pointer = TopicBinding(decode: .json, subject: try SubjectTemplate("{/id}"))
        #expect(refusal { _ = try decodeEvent(nil, binding: pointer) } == .missingSubject)
        #expect(refusal { _ = try decodeEvent("{", binding: pointer) } == .invalidJSON)
        let header = TopicBinding(decode: .key, subject: try SubjectTemplate("{header:h}"))
        #expect(refusal { _ = try decodeEvent(nil, binding: header) } == .missingSubject)
        let key = TopicBinding(decode: .key, subject: try SubjectTemplate("a-{key}"))
        #expect(refusal { _ = try decodeEvent(nil, key: nil, binding: key) } == .missingSubject)
        let long = String(repeating: "x", count: 255)
        #expect(refusal { _ = try decodeEvent(nil, key: long, binding: key) } == .invalidSubject)
        #expect(try decodeEvent("{", key: "k", binding: key).subject == "a-k")
    }

    @Test func `a binding's filters hold where the event names none`() throws {
        let binding = TopicBinding(
            decode: .json, kinds: ["a"], classes: TokenClassSet(.widget), delay: .seconds(3))
        let plain = try decodeEvent(nil, binding: binding)
        #expect(plain.kinds == ["a"])
        #expect(plain.classes == TokenClassSet(.widget))
        #expect(plain.delay == .seconds(3))
        let named = try decodeEvent(#"{"kinds":["b"],"classes":["control"]}"#, binding: binding)
        #expect(named.kinds == ["b"])
        #expect(named.classes == TokenClassSet(.control))
    }

    @Test func `a binding's push type leaves out the classes that it does not go to`() throws {
        var binding = TopicBinding(decode: .json, subject: try SubjectTemplate("{/id}"))
        binding.push.type = .widgets
        let event = try decodeEvent(#"{"id":"garage"}"#, binding: binding)
        #expect(event.classes == TokenClassSet(.widget))
    }

    @Test(
        arguments: [
            ("", .empty, 0), ("a{key", .unclosedBrace, 1), ("a}b", .strayBrace, 1),
            ("{key}}", .strayBrace, 5), ("x{header:}", .emptyHeaderName, 1),
            ("{Key}", .unknownPlaceholder, 0), ("{}", .unknownPlaceholder, 0),
            ("é{/a~2}", .invalidPointer, 2), ("constant", .constant, 0),
        ] as [(String, SubjectTemplateError.Problem, Int)])
    func `a template's mistakes are placed`(
        text: String, problem: SubjectTemplateError.Problem, position: Int
    ) {
        #expect {
            _ = try SubjectTemplate(text)
        } throws: { error in
            guard let error = error as? SubjectTemplateError else { return false }
            return error.problem == problem && error.position == position
                && error.message.contains("position \(position)")
        }
    }

    @Test func `a binding that cannot work is refused at start`() throws {
        let routing = IntakeFixtures.routing()
        func problem(_ binding: TopicBinding) -> TopicBindingError? {
            #expect(throws: TopicBindingError.self) {
                _ = try EventDecoder(
                    bindings: [binding], routing: routing, settings: EventSettings()
                ).self
            }
            return binding.problem(in: routing)
        }
        let pointer = try SubjectTemplate("{/id}")
        #expect(problem(TopicBinding(decode: .json, app: "x")) == .unknownApp("x"))
        #expect(
            problem(TopicBinding(decode: .key, subject: pointer)) == .pointerWithoutJSON("{/id}"))
        #expect(problem(TopicBinding(decode: .json, ttl: .zero)) == .ttlOutOfRange(.zero))
        let long = Duration.seconds(31 * 86_400)
        #expect(problem(TopicBinding(decode: .json, ttl: long)) == .ttlOutOfRange(long))
        #expect(problem(TopicBinding(decode: .json, delay: long)) == .delayOutOfRange(long))
        #expect(TopicBinding.standard.problem(in: routing) == nil)
    }
}

@Suite struct `CloudEvents` {
    private static let headers = [
        "ce_specversion": "1.0", "ce_id": "1", "ce_source": "/homes/1", "ce_type": "door.opened",
        "ce_subject": "door-7", "ce_time": "2026-11-21T12:00:10Z", "ce_pushapp": "com.example.Home",
        "ce_pushkinds": "a,b", "ce_pushclasses": "control,widget", "ce_pushttl": "60",
        "ce_pushcollapseid": "c",
    ]
    private static let binding = TopicBinding(decode: .cloudevents)

    private static func check(_ event: EventCopy) {
        #expect(event.subject == "door-7")
        #expect(event.life == .seconds(70))
        #expect(event.kinds == ["a", "b"])
        #expect(event.classes == [TokenClassSet(.control), TokenClassSet(.widget)])
        #expect(event.collapseID == "c")
    }

    @Test(arguments: [nil, [], Array("not JSON".utf8)] as [[UInt8]?])
    func `CloudEvents in binary mode are read from the headers, never the data`(value: [UInt8]?)
        throws
    {
        Self.check(try decodeEvent(value, headers: Self.headers, binding: Self.binding))
    }

    @Test func `a topic of events of ours takes them too, where there is a value`() throws {
        Self.check(try decodeEvent("data", headers: Self.headers))
        #expect(try decodeEvent(nil, headers: Self.headers).subject == "door-42")
    }

    @Test(arguments: ["60", #""60""#])
    func `CloudEvents in structured mode are read from the envelope`(ttl: String) throws {
        let envelope = #"""
            {"specversion":"1.0","id":"1","source":"/homes/1","type":"door.opened",
             "subject":"door-7","time":"2026-11-21T12:00:10Z","pushapp":"com.example.Home",
             "pushkinds":"a,b","pushclasses":"control,widget","pushttl":\#(ttl),
             "pushcollapseid":"c","priority":"the producer's","data":{"subject":"no"}}
            """#
        for type in ["application/cloudevents+json", "Application/CloudEvents+json; charset=utf-8"]
        {
            Self.check(
                try decodeEvent(envelope, headers: ["content-type": type], binding: Self.binding))
        }
        Self.check(try decodeEvent(envelope))
    }

    @Test func `a template replaces the attribute of a CloudEvent`() throws {
        let binding = TopicBinding(
            decode: .cloudevents, subject: try SubjectTemplate("{header:ce_source}#{/id}"))
        let event = try decodeEvent(#"{"id":5}"#, headers: Self.headers, binding: binding)
        #expect(event.subject == "/homes/1#5")
        let envelope = #"""
            {"specversion":"1.0","id":"77","source":"s","type":"t","pushapp":"com.example.Home"}
            """#
        let structured = TopicBinding(decode: .cloudevents, subject: try SubjectTemplate("n{/id}"))
        let type = ["content-type": "application/cloudevents+json"]
        #expect(try decodeEvent(envelope, headers: type, binding: structured).subject == "n77")
    }

    @Test func `a CloudEvent without a subject has its key for one`() throws {
        var headers = Self.headers
        headers["ce_subject"] = nil
        #expect(try decodeEvent(nil, headers: headers, binding: Self.binding).subject == "door-42")
    }

    @Test(arguments: ["specversion", "id", "source", "type"])
    func `a CloudEvent may not lack a required attribute`(name: String) {
        var headers = Self.headers
        headers["ce_" + name] = nil
        let code = refusal { _ = try decodeEvent(nil, headers: headers, binding: Self.binding) }
        #expect(code == (name == "specversion" ? .notCloudEvent : .missingField))
        var members = ["specversion": "1.0", "id": "1", "source": "s", "type": "t"]
        members[name] = nil
        let body = members.map { #""\#($0)":"\#($1)""# }.joined(separator: ",")
        let structured = refusal {
            _ = try decodeEvent(
                "{\(body)}", headers: ["content-type": "application/cloudevents+json"],
                binding: Self.binding)
        }
        #expect(structured == .missingField)
    }

    @Test(
        arguments: [
            ("ce_specversion", "0.3", .unknownVersion), ("ce_pushapp", "x", .unknownApp),
            ("ce_pushkinds", "a,,b", .invalidField), ("ce_pushclasses", "lamp", .invalidField),
            ("ce_pushttl", "0", .invalidField), ("ce_pushttl", "1.5", .invalidField),
            ("ce_pushttl", "999999999999", .invalidField),
            ("ce_pushcollapseid", "\n", .invalidField),
        ] as [(String, String, UnreadableCode)])
    func `a CloudEvent's malformed attribute is refused`(
        name: String, value: String, code: UnreadableCode
    ) {
        var headers = Self.headers
        headers[name] = value
        let refused = refusal { _ = try decodeEvent(nil, headers: headers, binding: Self.binding) }
        #expect(refused == code)
    }

    @Test(arguments: [
        ("ce_time", "now", "door-42"), ("ce_time", "", "door-42"),
        ("ce_time", "1795719600.123456789", "door-42"), ("ce_time", "1795719600123", "door-42"),
        ("ce_time", "2026-11-26 19:00:00Z", "door-42"),
        ("ce_time", "2026-11-26T19:00:00", "door-42"),
        ("ce_time", #""2026-11-26T19:00:00Z""#, "door-42"), ("ce_subject", "", "key-1"),
        ("ce_source", #""/doors""#, "door-42"), ("Content-Type", "text/plain", "door-42"),
        ("content-type", "APPLICATION/JSON", "door-42"),
    ])
    func `a CloudEvent's optional attribute that is wrong costs nothing`(
        name: String, value: String, subject: String
    ) throws {
        var headers = Self.headers
        headers["ce_subject"] = "door-42"
        headers[name] = value
        let event = try decodeEvent(nil, key: "key-1", headers: headers, binding: Self.binding)
        #expect(event.subject == subject)
        #expect(name != "ce_time" || event.time == IntakeFixtures.now)
    }

    @Test func `a CloudEvent whose headers are all in quotation marks is read`() throws {
        var headers = Self.headers
        headers["ce_subject"] = "door-42"
        let quoted = headers.mapValues { "\"\($0)\"" }
        let event = try decodeEvent(nil, key: "k", headers: quoted, binding: Self.binding)
        #expect(event.subject == "door-42")
    }

    @Test(
        arguments: [
            nil, ("content-type", "application/json"),
            ("content-type", "APPLICATION/CLOUDEVENTS+JSON"),
            ("content-type", "application/cloudevents+json;charset=utf-8"),
            ("content-type", "Application/CloudEvents+Json; charset=UTF-8"),
            ("content-type", #""application/cloudevents+json""#),
            ("Content-Type", "application/cloudevents+json"),
            ("contentType", "application/cloudevents+JSON"), ("datacontenttype", "text/plain"),
            ("ce_datacontenttype", "application/cloudevents+json"),
        ] as [(String, String)?])
    func `an envelope is a CloudEvent, whatever its headers say of it`(
        header: (String, String)?
    ) throws {
        let headers = header.map { [$0.0: $0.1] } ?? [:]
        for time in [#""2026-11-26T19:00:00Z""#, "null", "1795719600", #""soon""#, "[2026,11,26]"] {
            let envelope = #"""
                {"specversion":"1.0","id":"1","source":"s","type":"com.dapr.event.sent",
                 "time":\#(time),"data":{"wei":100000000000000000000}}
                """#
            let event = try decodeEvent(
                envelope, key: "door-42", headers: headers, binding: Self.binding)
            #expect(event.subject == "door-42")
        }
    }

    @Test func `what is no CloudEvent is refused where one is due`() {
        func refused(_ value: String, _ type: String?) -> UnreadableCode? {
            refusal {
                _ = try decodeEvent(
                    value, headers: type.map { ["content-type": $0] } ?? [:], binding: Self.binding)
            }
        }
        #expect(refused("{}", nil) == .notCloudEvent)
        #expect(refused("{}", "application/json") == .notCloudEvent)
        #expect(refused("{}", "application/cloudevents-batch+json") == .notCloudEvent)
        #expect(refused("{}", "application/cloudevents+avro") == .notCloudEvent)
        #expect(refused("", "application/cloudevents+json") == .emptyValue)
        #expect(refused("[]", "application/cloudevents+json") == .notAnObject)
        let wrong = #"{"specversion":"1.0","id":1,"source":"s","type":"t"}"#
        #expect(refused(wrong, "application/cloudevents+json") == .invalidField)
    }
}
