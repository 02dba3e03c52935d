// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Intake
internal import PushModel
internal import RecordFormats
internal import Testing

@Suite struct `Producer records` {
    private static func rows(_ change: (inout TopicBinding) -> Void = { _ in }) -> TopicBinding {
        var binding = TopicBinding(decode: .debezium, subject: try! SubjectTemplate("order-{/id}"))
        change(&binding)
        return binding
    }

    private static func documents(
        _ change: (inout TopicBinding) -> Void = { _ in }
    ) -> TopicBinding {
        var binding = TopicBinding(decode: .json, subject: try! SubjectTemplate("order-{/id}"))
        change(&binding)
        return binding
    }

    private static func isLeftOut(_ body: () throws -> EventCopy) -> Bool {
        do {
            _ = try body()
            return false
        } catch {
            return error is RecordLeftOut
        }
    }

    private static func envelope(_ op: String, before: String, after: String) -> String {
        #"{"before":\#(before),"after":\#(after),"source":{"table":"orders"},"op":"\#(op)","ts_ms":1}"#
    }

    // MARK: Debezium

    @Test(arguments: [
        ("c", "null", #"{"id":7}"#), ("u", #"{"id":7}"#, #"{"id":7}"#), ("d", #"{"id":7}"#, "null"),
    ])
    func `a changed row is an event, with its schema or without`(
        op: String, before: String, after: String
    ) throws {
        let envelope = Self.envelope(op, before: before, after: after)
        for value in [envelope, #"{"schema":{"type":"struct"},"payload":\#(envelope)}"#] {
            #expect(try decodeEvent(value, key: nil, binding: Self.rows()).subject == "order-7")
        }
    }

    @Test func `a snapshot's rows, tombstones and messages are left out`() throws {
        let read = Self.envelope("r", before: "null", after: #"{"id":7}"#)
        #expect(Self.isLeftOut { try decodeEvent(read, binding: Self.rows()) })
        #expect(Self.isLeftOut { try decodeEvent(nil, binding: Self.rows()) })
        for op in ["t", "m"] {
            let other = Self.envelope(op, before: "null", after: "null")
            #expect(Self.isLeftOut { try decodeEvent(other, binding: Self.rows()) })
        }
        let asked = Self.rows { $0.operations = [.read] }
        #expect(try decodeEvent(read, binding: asked).subject == "order-7")
    }

    @Test func `what is no change of a row says so`() {
        for value in [
            #"{"id":7}"#, #"{"op":"d","before":null,"after":null}"#, #"{"op":1}"#,
            #"{"op":"u","before":{"id":1}}"#,
            #"{"database":"d","table":"t","type":"update","data":{"id":7},"old":{}}"#,
            #"{"data":{"id":7},"metadata":{"operation":"update"}}"#,
        ] {
            #expect(refusal { _ = try decodeEvent(value, binding: Self.rows()) } == .notChange)
        }
    }

    @Test func `a row may name what it was and what it is`() throws {
        let moved = Self.envelope(
            "u", before: #"{"id":7,"owner":"a"}"#, after: #"{"id":7,"owner":"b"}"#)
        let binding = Self.rows {
            $0.subjects = [
                try! SubjectTemplate("user-{before:/owner}"),
                try! SubjectTemplate("user-{after:/owner}"),
            ]
        }
        let event = try decodeEvent(moved, binding: binding)
        #expect(event.subject == "order-7" && event.furtherSubjects == ["user-a", "user-b"])
        // The same one twice is one.
        let same = Self.envelope(
            "u", before: #"{"id":7,"owner":"a"}"#, after: #"{"id":7,"owner":"a"}"#)
        #expect(try decodeEvent(same, binding: binding).furtherSubjects == ["user-a"])
    }

    @Test func `a row whose field has not changed is left out`() throws {
        let binding = Self.rows {
            $0.conditions = [.init(field: FieldPath("/status")!, tests: [.changed(true)])]
        }
        func row(_ before: String, _ after: String) -> String {
            Self.envelope(
                "u", before: #"{"id":7,"status":\#(before)}"#,
                after: #"{"id":7,"status":\#(after)}"#)
        }
        #expect(Self.isLeftOut { try decodeEvent(row("1", "1"), binding: binding) })
        #expect(
            Self.isLeftOut {
                try decodeEvent(row(#"{"a":[1]}"#, #"{ "a" : [1] }"#), binding: binding)
            })
        #expect(try decodeEvent(row("1", "2"), binding: binding).subject == "order-7")
        #expect(try decodeEvent(row("null", "2"), binding: binding).subject == "order-7")
        let created = Self.envelope("c", before: "null", after: #"{"id":7,"status":1}"#)
        #expect(try decodeEvent(created, binding: binding).subject == "order-7")
    }

    // MARK: What connectors write

    /// The subjects, or the code of the refusal.
    private static func outcome(
        _ value: String, key: String? = "k", _ change: (inout TopicBinding) -> Void = { _ in }
    ) -> String {
        do {
            return try decodeEvent(value, key: key, binding: rows(change)).subject
        } catch is RecordLeftOut {
            return "filtered"
        } catch {
            return (error as? UnreadableRecord)?.code ?? "\(error)"
        }
    }

    private static func key(_ template: String) -> (inout TopicBinding) -> Void {
        { $0.subject = try! SubjectTemplate(template) }
    }

    @Test(arguments: [
        // MongoDB's rows are texts of extended JSON.
        ("null", #""{\"id\":42}""#, "order-42"), ("null", #""{\"id\":\"42\"}""#, "order-42"),
        ("null", #""{\"id\":{\"$oid\":\"65f1\"}}""#, "order-65f1"),
        ("null", #""{\"id\":{\"$numberLong\":\"42\"}}""#, "order-42"),
        ("null", #""{\"id\":{\"$numberDecimal\":\"42\"}}""#, "order-42"),
        ("null", #""{\"id\":{\"$date\":42}}""#, "order-42"),
        ("null", #""{\"id\":{\"$other\":42}}""#, "missingSubject"),
        ("null", #""42""#, "notChange"), ("null", #""{""#, "notChange"),
        ("null", "[]", "notChange"),
        // Cells of Cassandra's and YugabyteDB's.
        ("null", #"{"id":{"value":42,"deletion_ts":null,"set":true}}"#, "order-42"),
        ("null", #"{"id":{"value":"42","set":true}}"#, "order-42"),
        ("null", #"{"id":{"value":null,"set":true}}"#, "missingSubject"),
        ("null", #"{"id":{"value":42,"unit":"m"}}"#, "missingSubject"),
        // Decimals.
        ("null", #"{"id":{"scale":0,"value":"Kg=="}}"#, "order-42"),
        ("null", #"{"id":{"scale":2,"value":"Dzw="}}"#, "order-39.00"),
        ("null", #"{"id":{"scale":-2,"value":"Kg=="}}"#, "order-4200"),
        ("null", #"{"id":{"scale":0,"value":"1g=="}}"#, "order--42"),
        ("null", #"{"id":{"scale":9999,"value":"Kg=="}}"#, "missingSubject"),
        ("null", #"{"id":{"scale":0,"value":"*"}}"#, "missingSubject"),
        // What PostgreSQL does not send.
        ("null", #"{"id":"__debezium_unavailable_value"}"#, "missingSubject"),
        ("null", #"{"id":"X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="}"#, "missingSubject"),
        ("null", #"{"id":["__debezium_unavailable_value"]}"#, "missingSubject"),
        ("null", #"{"id":"__debezium_unavailable_valuE"}"#, "order-__debezium_unavailable_valuE"),
        // Numbers of any size, and what nobody reads.
        ("null", #"{"id":18446744073709551615}"#, "order-18446744073709551615"),
        ("null", #"{"id":100000000000000000000,"x":1e400}"#, "order-100000000000000000000"),
        ("null", #"{"id":1,"x":"\ud83d"}"#, "order-1"), ("null", "{}", "notChange"),
    ])
    func `a row is read as its connector writes it`(
        before: String, after: String, expected: String
    ) {
        let envelope = Self.envelope("u", before: before, after: after)
        #expect(Self.outcome(envelope) == expected)
    }

    @Test(arguments: [
        ("Kg==", 0, "order-42"), ("Dzw=", 2, "order-39.00"), ("AA==", 2, "order-0.00"),
        ("Kg==", -1, "order-420"), ("/w==", 1, "order--0.1"), ("42", 2, "order-42"),
        ("Kg==", 240, "order-0." + String(repeating: "0", count: 238) + "42"),
        ("Kg==", -240, "order-42" + String(repeating: "0", count: 240)), ("AA==", -1000, "order-0"),
        ("Kg==", 1001, "order-Kg=="), ("Kg==", -1001, "order-Kg=="),
        ("Kg==", .max, "order-Kg=="), ("Kg==", .min, "order-Kg=="),
    ])
    func `a decimal is read by the schema beside it`(text: String, scale: Int, expected: String) {
        let schema = #"""
            {"type":"struct","fields":[{"type":"struct","field":"before"},{"type":"struct",
             "field":"after","fields":[{"type":"bytes","field":"id",
             "name":"org.apache.kafka.connect.data.Decimal","parameters":{"scale":"\#(scale)"}}]}]}
            """#
        let envelope = Self.envelope("c", before: "null", after: #"{"id":"\#(text)"}"#)
        #expect(Self.outcome(#"{"schema":\#(schema),"payload":\#(envelope)}"#) == expected)
    }

    @Test(arguments: [
        (#"{"id":42}"#, "order-42"), (#"{"schema":{},"payload":{"id":42}}"#, "order-42"),
        (#"{"id":"{\"$oid\":\"65f1\"}"}"#, "order-65f1"), (#"{"id":"\"42\""}"#, "order-42"),
        (#"{"id":"42"}"#, "order-42"), (#"{"id":{"value":42,"set":true}}"#, "order-42"),
        (#"{"id":18446744073709551616}"#, "order-18446744073709551616"),
        ("\u{FEFF}{\"id\":42}", "order-42"), (#"{"id":null}"#, "missingSubject"),
        ("door", "invalidJSON"),
    ])
    func `a change without a row has the subject of its key`(key: String, expected: String) {
        for op in ["d", "u", "c"] {
            let envelope = Self.envelope(op, before: "null", after: "null")
            #expect(Self.outcome(envelope, key: key, Self.key("order-{key:/id}")) == expected)
            #expect(Self.outcome(envelope, key: key) == "notChange")
        }
    }

    @Test func `what the database has not sent has not changed, and no alert shows it`() throws {
        let placeholder = #""__debezium_unavailable_value""#
        func changed(_ before: String, _ after: String, _ op: String = "u") -> String {
            Self.outcome(
                Self.envelope(
                    op, before: before, after: #"{"id":1,"body":\#(after)}"#)
            ) { $0.conditions = [.init(field: FieldPath("/body")!, tests: [.changed(true)])] }
        }
        #expect(changed(#"{"id":1,"body":"a"}"#, placeholder) == "filtered")
        #expect(changed(#"{"id":1,"body":"a"}"#, "[\(placeholder)]") == "filtered")
        #expect(changed(#"{"id":1,"body":"a"}"#, #""b""#) == "order-1")
        #expect(changed(#"{"id":1,"body":1.0}"#, "1.00") == "filtered")
        #expect(changed("null", placeholder) == "filtered")
        let shown = Self.rows {
            $0.push.payload = try! PushTemplate(
                .map([("aps", .map([("alert", .text("{/body}"))]))]))
        }
        let update = Self.envelope(
            "u", before: #"{"id":1,"body":"a"}"#, after: #"{"id":1,"body":\#(placeholder)}"#)
        #expect(refusal { _ = try decodeEvent(update, binding: shown) } == .missingField)
    }

    @Test(arguments: [
        (#""{\"state\":1}""#, #""{\"state\":2}""#, "order-1"),
        (#""{\"state\":1}""#, #""{\"state\":1}""#, "filtered"),
        (#"{"state":1}"#, #"{"state":2}"#, "order-1"),
        (#"{"state":1}"#, #"{"state":1}"#, "filtered"),
        ("null", #""{\"state\":1}""#, "order-1"), (#""{\"state\":1}""#, "null", "order-1"),
        ("null", "null", "filtered"),
        // The whole text is compared.
        (#""{\"state\":1,\"x\":1}""#, #""{\"state\":1,\"x\":2}""#, "order-1"),
        (#""{\"state\":1}""#, #""__debezium_unavailable_value""#, "filtered"),
    ])
    func `a change inside of a text of JSON is a change`(
        before: String, after: String, expected: String
    ) {
        let envelope = Self.envelope(
            "u", before: #"{"id":1,"data":\#(before)}"#, after: #"{"id":1,"data":\#(after)}"#)
        let outcome = Self.outcome(envelope) {
            $0.conditions = [.init(field: FieldPath("/data/state")!, tests: [.changed(true)])]
        }
        #expect(outcome == expected)
    }

    @Test func `half of a character names nothing, also where a row is written anew`() {
        func created(_ row: String) -> String {
            Self.outcome(Self.envelope("c", before: "null", after: row))
        }
        #expect(created(#"{"id":"\ud83d"}"#) == "invalidSubject")
        #expect(created(#"{"id":"\ud83d","n":{"scale":2,"value":"Dzw="}}"#) == "invalidSubject")
        #expect(created(#"{"id":1,"n":{"scale":2,"value":"Dzw=","x":1}}"#) == "order-1")
        let deleted = Self.envelope("d", before: "null", after: "null")
        #expect(
            Self.outcome(
                deleted, key: #"{"id":"\ud83d","x":"\"1\""}"#, Self.key("order-{key:/id}"))
                == "invalidSubject")
        let document = Self.outcome(#"{"id":"\ud83d","data":"{\"a\":1}"}"#) {
            $0.decode = .json
            $0.conditions = [.init(field: FieldPath("/data/a")!, tests: [.exists(true)])]
        }
        #expect(document == "invalidSubject")
    }

    @Test(arguments: [#"{"count":1}"#, "{}"])
    func `a text stays a text unless a field inside of it is read`(meta: String) throws {
        let payload = try! PushTemplate(
            .map([
                ("aps", .map([("alert", .text("x"))])), ("raw", .text("{/body}")),
                (
                    "count",
                    .map([("$field", .text("/meta/count")), ("default", .literal("0"))])
                ),
            ]))
        let event = try decodeEvent(
            #"{"id":1,"body":"{\"a\":1}","meta":\#(meta)}"#,
            binding: Self.rows {
                $0.decode = .json
                $0.push.payload = payload
            })
        let body = try #require(event.payload)
        #expect(body.contains(#""raw":"{\"a\":1}""#))
    }

    @Test(arguments: ["1e999", "-1e400", "[1e999]", #"{"a\"":1E309}"#])
    func `a payload has no number that phones refuse`(number: String) {
        let value = #"{"id":1,"n":\#(number)}"#
        let binding = Self.rows {
            $0.decode = .json
            $0.push.payload = try! PushTemplate(
                .map([("aps", .map([("alert", .text("x"))])), ("n", .text("{/n}"))]))
        }
        #expect(refusal { _ = try decodeEvent(value, binding: binding) } == .invalidPayload)
    }

    @Test(arguments: [
        (#"{"payload":"{\"id\":42}"}"#, "order-42"), (#"{"payload":{"id":42}}"#, "order-42"),
        (#""{\"payload\":{\"id\":42}}""#, "order-42"),
        (#"{"schema":{"type":"string"},"payload":"{\"id\":\"42\"}"}"#, "order-42"),
        (#"{"payload":"{\"id\":100000000000000000000}"}"#, "order-100000000000000000000"),
        (#"{"payload":"{\"id\":}"}"#, "missingSubject"), (#"{"payload":"x"}"#, "missingSubject"),
        (#"{"payload":"[42]"}"#, "missingSubject"), (#""x""#, "notAnObject"),
        (#"[{"payload":{"id":42}}]"#, "notAnObject"), ("42", "notAnObject"),
        (#"{"a":"{","payload":"{\"id\":42}","b":1.50}"#, "order-42"),
    ])
    func `JSON in a text of JSON is read where a field is inside of it`(
        value: String, expected: String
    ) {
        let outcome = Self.outcome(value) {
            $0.decode = .json
            $0.subject = try! SubjectTemplate("order-{/payload/id}")
        }
        #expect(outcome == expected)
    }

    @Test(arguments: [
        ("42", "order-42"), (#""42""#, "order-42"), ("\u{FEFF}42", "order-42"),
        (#"{"schema":{"type":"string"},"payload":"42"}"#, "order-42"),
        ("18446744073709551616", "order-18446744073709551616"), (#"{"id":42}"#, "missingSubject"),
        ("Struct{id=42}", "invalidJSON"), ("true", "missingSubject"), ("42.5", "missingSubject"),
        (#""""#, "missingSubject"),
    ])
    func `a key may be a JSON text`(key: String, expected: String) {
        for decode in [TopicBinding.Decode.key, .json] {
            let outcome = Self.outcome("{}", key: key) {
                $0.decode = decode
                $0.subject = try! SubjectTemplate("order-{key:}")
            }
            #expect(outcome == expected)
        }
    }

    @Test(
        arguments: [
            (RecordCondition.Test.above(0), #""x""#, "a text of 1 bytes"),
            (.above(0), "{}", "an empty object"),
            (.atMost(9), "true", "true or false"), (.atMost(9), "[1]", "an array"),
            (.isOneOf([.number(39)]), #""39""#, "a text of 2 digits"),
            (.isOneOf([.text("39")]), "39", "an integer of 2 digits"),
            (.isOneOf([.flag(true)]), #""true""#, "a text of 4 bytes"),
            (.isOneOf([.flag(true)]), "1", "an integer of 1 digit"), (.above(9), "1", nil),
            (.above(9), #""1.5""#, nil), (.isOneOf([.text("a")]), #""b""#, nil),
            (.above(9), "null", nil),
        ] as [(RecordCondition.Test, String, String?)])
    func `a condition that meets another type is told of`(
        test: RecordCondition.Test, value: String, shape: String?
    ) throws {
        let binding = Self.documents {
            $0.conditions = [.init(field: FieldPath("/a")!, tests: [test])]
        }
        let record = #"{"id":1,"a":\#(value)}"#
        #expect(Self.isLeftOut { try decodeEvent(record, binding: binding) })
        let notes = try notes(of: record, binding, times: 2).counts
        #expect(notes.values.first == (shape == nil ? nil : 2))
        #expect(notes.keys.first?.message.contains("/a met \(shape ?? "")") ?? (shape == nil))
    }

    @Test(
        arguments: [
            (#"{"id":1,"body":"__debezium_unavailable_value"}"#, 1),
            (#"{"id":1,"body":["__debezium_unavailable_value"]}"#, 1),
            (#"{"id":1,"body":"X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="}"#, 1),
            (#"{"id":1,"body":{"__debezium_unavailable_value":""}}"#, 1),
            (#"{"id":1,"body":{"value":"__debezium_unavailable_value","set":true}}"#, 1),
            (#"{"id":1,"body":null}"#, nil), (#"{"id":1,"body":"a"}"#, nil), (#"{"id":1}"#, nil),
            (#"{"id":1,"other":"__debezium_unavailable_value"}"#, nil),
            (#"{"id":1,"body":"__debezium_unavailable_value "}"#, nil),
            (#"{"id":1,"body":[]}"#, nil),
        ] as [(String, Int?)])
    func `a column that the database did not send is told where it decides something`(
        row: String, count: Int?
    ) throws {
        let exists = Self.rows {
            $0.conditions = [.init(field: FieldPath("/body")!, tests: [.exists(true)])]
        }
        let standIn = Self.rows {
            $0.push.payload = try! PushTemplate(
                .map([
                    (
                        "aps",
                        .map([
                            (
                                "alert",
                                .map([("$field", .text("/body")), ("default", .text("new"))])
                            )
                        ])
                    )
                ]))
        }
        let absent = Self.rows {
            $0.conditions = [.init(field: FieldPath("/body")!, tests: [.exists(false)])]
        }
        let tests: [RecordCondition.Test] = [
            .isOneOf([.text("b")]), .isNoneOf([.text("b")]), .above(0),
        ]
        let others = tests.map { test in
            Self.rows { $0.conditions = [.init(field: FieldPath("/body")!, tests: [test])] }
        }
        let words = [
            Self.rows { $0.kindsFrom = FieldPath("/body") },
            Self.rows { $0.classesFrom = FieldPath("/body") },
        ]
        // That has not changed, which is what it asks.
        let changed = Self.rows {
            $0.conditions = [.init(field: FieldPath("/body")!, tests: [.changed(true)])]
        }
        // One field that both ask for is told of once.
        let both = Self.rows {
            $0.conditions = absent.conditions
            $0.push = standIn.push
        }
        // Another condition has decided.
        let leftOut = Self.rows {
            $0.conditions = [.init(field: FieldPath("/id")!, tests: [.above(1)])]
            $0.push = standIn.push
        }
        let value = Self.envelope("u", before: "null", after: row)
        for binding in [exists, absent, standIn, both] + others + words {
            #expect(try notes(of: value, binding).totals[.unsentColumn] == count)
        }
        for binding in [leftOut, changed, Self.rows()] {
            #expect(try notes(of: value, binding).totals[.unsentColumn] == nil)
        }
    }

    @Test func `records without a condition's field are counted apart`() throws {
        let binding = Self.documents {
            $0.conditions = [
                .init(field: FieldPath("/open")!, tests: [.isOneOf([.flag(true)])]),
                .init(field: FieldPath("/total")!, tests: [.above(0)]),
            ]
        }
        let wrapped = #"{"schema":{},"payload":{"open":true,"total":5}}"#
        let absences = try notes(of: wrapped, binding, times: 3).absences
        #expect(absences.count == 1 && absences[0]?.field == "/open" && absences[0]?.count == 3)
        for value in [#"{"open":true}"#, #"{"open":true,"total":null}"#] {
            let absences = try notes(of: value, binding).absences
            #expect(absences.count == 1 && absences[1]?.field == "/total")
        }
        for value in [#"{"open":false}"#, #"{"open":true,"total":0}"#, #"{"open":true,"total":1}"#]
        {
            #expect(try notes(of: value, binding).absences.isEmpty)
        }
    }

    @Test(
        arguments: [
            (#"{"id":1,"settings":"__debezium_unavailable_value"}"#, 1),
            (#"{"id":1,"settings":{"alarm":"__debezium_unavailable_value"}}"#, 1),
            (#"{"id":1,"settings":"{\"alarm\":true}"}"#, nil), (#"{"id":1,"settings":"{}"}"#, nil),
            (#"{"id":1,"settings":{"alarm":null}}"#, nil), (#"{"id":1}"#, nil),
        ] as [(String, Int?)])
    func `a column that the database did not send is told where a field is inside of it`(
        row: String, count: Int?
    ) throws {
        let binding = Self.rows {
            $0.push.payload = try! PushTemplate(
                .map([
                    ("aps", .map([("alert", .text("x"))])),
                    (
                        "alarm",
                        .map([("$field", .text("/settings/alarm")), ("default", .literal("true"))])
                    ),
                ]))
        }
        let value = Self.envelope("u", before: "null", after: row)
        let notes = try notes(of: value, binding)
        #expect(notes.totals[.unsentColumn] == count)
        #expect(notes.counts.keys.allSatisfy { $0.message.contains("/settings/alarm") })
    }

    // MARK: Why a record is left out

    /// What is said of a record that its binding leaves out.
    private static func reason(_ value: String?, _ binding: TopicBinding) throws -> String {
        var decoder = try EventDecoder(
            bindings: [binding], routing: IntakeFixtures.routing(), settings: EventSettings())
        return lending(value.map { Array($0.utf8) }) { value in
            lending(Array("k".utf8)) { key in
                let record = EventRecord(
                    binding: 0, key: key, value: value, timestamp: IntakeFixtures.now)
                guard
                    case nil = try? decoder.event(
                        of: record, now: IntakeFixtures.now, header: { _ in nil })
                else { return "it is an event" }
                let counted = decoder.notes[0].totals
                let reason = decoder.reasonLeftOut(
                    record, now: IntakeFixtures.now, header: { _ in nil })
                let countedNow = decoder.notes[0].totals
                #expect(countedNow == counted, "a question is no record")
                return reason.text
            }
        }
    }

    @Test(
        arguments: [
            (
                [.isOneOf([.text("shipped")])], #""draft""#,
                #"/a must be equals: "shipped", and the record has a text of 5 bytes"#
            ),
            (
                [.isOneOf([.text("a"), .number(3)])], "4",
                #"/a must be in: ["a", 3], and the record has an integer of 1 digit"#
            ),
            (
                [.isOneOf([.number(5)])], #""5""#,
                "/a must be equals: 5, and the record has a text of 1 digit, for which that never "
                    + "holds"
            ),
            (
                [.isNoneOf([.flag(true)])], "true",
                "/a must be notIn: [true], and the record has true or false"
            ),
            ([.above(0)], "null", "/a must be above: 0, and the record has none there"),
            (
                [.above(0)], #""x""#,
                "/a must be above: 0, and the record has a text of 1 bytes, for which that never holds"
            ),
            (
                [.atLeast(2), .atMost(2.5)], "3",
                "/a must be atMost: 2.5, and the record has an integer of 1 digit"
            ),
            ([.below(0)], "{}", "for which that never holds"),
            ([.exists(true)], "null", "/a must be exists: true, and the record has none there"),
            ([.exists(false)], "[]", "/a must be exists: false, and the record has an empty array"),
            ([.exists(true)], "1", "it is an event"),
        ] as [([RecordCondition.Test], String, String)])
    func `a record that is left out has the condition that failed`(
        tests: [RecordCondition.Test], value: String, reason: String
    ) throws {
        let record = #"{"id":1,"a":\#(value)}"#
        let condition = RecordCondition(field: FieldPath("/a")!, tests: tests)
        let found = try Self.reason(record, Self.documents { $0.conditions = [condition] })
        #expect(found == reason || found.hasSuffix(reason), "\(found)")
        let change = Self.envelope("c", before: "null", after: record)
        let ofChange = try Self.reason(change, Self.rows { $0.conditions = [condition] })
        #expect(ofChange == reason || ofChange.hasSuffix(reason), "\(ofChange)")
    }

    @Test func `a record that is left out has its operation, or the field that it lacks`() throws {
        let row = #"{"id":7,"status":"a"}"#
        #expect(
            try Self.reason(Self.envelope("r", before: "null", after: row), Self.rows())
                == "operations has create, update, delete, and the record has operation read")
        #expect(
            try Self.reason(
                Self.envelope("t", before: "null", after: "null"),
                Self.rows { $0.operations = [.update] })
                == "operations has update, and the record has operation t")
        #expect(
            try Self.reason(
                Self.envelope(#"\u001b[2J"#, before: "null", after: "null"), Self.rows())
                == #"operations has create, update, delete, and the record has operation \u{1b}[2J"#
        )
        #expect(try Self.reason(nil, Self.rows()) == "it is a tombstone")
        let changed = Self.rows {
            $0.conditions = [.init(field: FieldPath("/status")!, tests: [.changed(true)])]
        }
        #expect(
            try Self.reason(Self.envelope("u", before: row, after: row), changed)
                == "/status must be changed: true, and the record has the same before and after the "
                + "change")
        let unchanged = Self.rows {
            $0.conditions = [.init(field: FieldPath("/status")!, tests: [.changed(false)])]
        }
        #expect(
            try Self.reason(Self.envelope("u", before: "null", after: row), unchanged)
                == "/status must be changed: false, and the record has a row before the change "
                + "that is not known, so that it was taken as changed")
        #expect(
            try Self.reason(
                Self.envelope("u", before: #"{"id":7,"status":"b"}"#, after: row), unchanged)
                == "/status must be changed: false, and the record has another one before the "
                + "change than after it")
        let skip = Self.documents { $0.missing = .skip }
        let missing = try Self.reason(#"{"number":7}"#, skip)
        #expect(missing.contains("/id") && missing.hasSuffix("(missing: skip)"), "\(missing)")
        let torn = try Self.reason(#"{"id":"#, skip)
        #expect(!torn.isEmpty && !torn.contains("missing: skip"), "\(torn)")
        let push = Self.documents {
            $0.missing = .skip
            $0.push.payload = try! PushTemplate(
                .map([("aps", .map([("alert", .text("{/text}"))]))]))
        }
        #expect(try Self.reason(#"{"id":7}"#, push).contains("/text"))
    }

    @Test func `a record that is left out is judged by the classes that it names`() throws {
        let push = Self.documents {
            $0.missing = .skip
            $0.classes = TokenClassSet(.control)
            $0.classesFrom = FieldPath("/classes")
            $0.push.payload = try! PushTemplate(.map([("aps", .map([("alert", .text("x"))]))]))
            $0.push.collapseID = try! SubjectTemplate("{/group}")
        }
        let reason = try Self.reason(#"{"id":7,"classes":"device"}"#, push)
        #expect(reason.contains("/group") && reason.hasSuffix("(missing: skip)"), "\(reason)")
    }

    // MARK: Conditions

    @Test(
        arguments: [
            (
                RecordCondition.Test.isOneOf([.text("shipped"), .number(3)]),
                [#""shipped""#, "3", "3.0"],
                [#""3""#, "true", "null", "[]", #""Shipped""#]
            ),
            (.isOneOf([.flag(true)]), ["true"], ["false", "1", #""true""#]),
            (.isNoneOf([.text("draft")]), [#""x""#, "null", "1"], [#""draft""#]),
            (.exists(true), ["0", "false", #""""#, "{}"], ["null"]),
            (.exists(false), ["null"], ["0"]),
            (
                .above(2), ["3", "2.5", "18446744073709551615", #""9""#],
                ["2", "-3", #""x""#, "null"]
            ),
            (
                .above(2),
                [
                    #""39.00""#, #""2.01""#, #""+3""#, #""1E+2""#, #""0003""#, "1e400",
                    "100000000000000000000000000000000000000000",
                    #""100000000000000000000000000000000000000000""#,
                ],
                [
                    #""2.00""#, #""-39.00""#, #""3 ""#, #"" 3""#, #""3,5""#, #""0x9""#, #""""#,
                    #""NaN""#, #""3.""#, #"".5e9""#, #""3e""#, "[3]", "{}", "true", "-1e400",
                    #""-100000000000000000000000000000000000000000""#,
                ]
            ),
            (
                .below(ExactNumber("100000000000000000000000000000000000000000")!),
                ["99999999999999999999999999999999999999999", #""1e40""#, "1e40", "-1e400"],
                ["100000000000000000000000000000000000000000", #""1e41""#, "1e41", "1e400"]
            ),
            (
                // The longest decimals that are made of Avro's and Protobuf's.
                .above(2),
                [
                    longText("9", zeros: 1308), longText("+9", zeros: 1307),
                    longText("3.", zeros: 1306, "1"),
                ],
                [
                    longText("-9", zeros: 1307), longText("0.", zeros: 1306, "1"),
                    longText("9", zeros: 1309),
                ]
            ),
            (.below(2), ["1", "-1e9"], ["2", "null"]), (.atLeast(2), ["2"], ["1.999"]),
            (.atMost(2), ["2"], ["2.001", "null"]),
            // As doubles, each of these is its neighbour.
            (
                .isOneOf([.number(9_007_199_254_740_993)]), ["9007199254740993"],
                ["9007199254740992", "9007199254740994", "9007199254740992.0"]
            ),
            (
                .isNoneOf([.number(9_007_199_254_740_993)]), ["9007199254740992"],
                ["9007199254740993"]
            ),
            (
                .above(9_007_199_254_740_992),
                ["9007199254740993", "18446744073709551615", "1e30"],
                ["9007199254740992", "9007199254740991.0", "-1e30"]
            ),
            (.above(2.5), ["3", "2.75"], ["2", "2.5", "-9007199254740993"]),
            (.below(-2.5), ["-3", "-1e300"], ["-2", "-2.5", "0"]),
            (
                .isOneOf([.number(ExactNumber("18446744073709551615")!)]),
                ["18446744073709551615"], ["18446744073709551614", "-1"]
            ),
        ] as [(RecordCondition.Test, [String], [String])])
    func `a condition holds for these values and for no others`(
        test: RecordCondition.Test, good: [String], bad: [String]
    ) throws {
        let binding = Self.documents {
            $0.conditions = [.init(field: FieldPath("/a/b")!, tests: [test])]
        }
        for value in good {
            #expect(
                try decodeEvent(#"{"id":1,"a":{"b":\#(value)}}"#, binding: binding).subject
                    == "order-1")
        }
        for value in bad {
            let record = #"{"id":1,"a":{"b":\#(value)}}"#
            #expect(Self.isLeftOut { try decodeEvent(record, binding: binding) }, "\(value)")
        }
    }

    @Test func `all conditions must hold`() {
        let binding = Self.documents {
            $0.conditions = [
                .init(field: FieldPath("/a")!, tests: [.above(1), .below(5)]),
                .init(field: FieldPath("/b")!, tests: [.exists(true)]),
            ]
        }
        #expect(!Self.isLeftOut { try decodeEvent(#"{"id":1,"a":2,"b":1}"#, binding: binding) })
        #expect(Self.isLeftOut { try decodeEvent(#"{"id":1,"a":7,"b":1}"#, binding: binding) })
        #expect(Self.isLeftOut { try decodeEvent(#"{"id":1,"a":2}"#, binding: binding) })
    }

    // MARK: What is missing

    @Test func `a missing field is a dead letter, or is left out where that is said`() throws {
        let two = Self.documents { $0.subjects = [try! SubjectTemplate("user-{/user}")] }
        #expect(refusal { _ = try decodeEvent(#"{"id":1}"#, binding: two) } == .missingSubject)
        var skipping = two
        skipping.missing = .skip
        let event = try decodeEvent(#"{"id":1}"#, binding: skipping)
        #expect(event.subject == "order-1" && event.furtherSubjects.isEmpty)
        #expect(try decodeEvent(#"{"user":"u"}"#, binding: skipping).subject == "user-u")
        #expect(Self.isLeftOut { try decodeEvent(#"{"x":1}"#, binding: skipping) })
        // What is there and wrong is a mistake, whatever is said of what is missing.
        let long = String(repeating: "x", count: 300)
        #expect(
            refusal { _ = try decodeEvent(#"{"id":"\#(long)"}"#, binding: skipping) }
                == .invalidSubject)
    }

    @Test func `kinds and classes come from fields`() throws {
        let binding = Self.documents {
            $0.kindsFrom = FieldPath("/k")
            $0.classesFrom = FieldPath("/c")
        }
        let event = try decodeEvent(#"{"id":1,"k":["a","b"],"c":"widget"}"#, binding: binding)
        #expect(event.kinds == ["a", "b"] && event.classes == TokenClassSet(.widget))
        #expect(
            refusal { _ = try decodeEvent(#"{"id":1,"k":[],"c":"widget"}"#, binding: binding) }
                == .invalidField)
        #expect(
            refusal { _ = try decodeEvent(#"{"id":1,"k":"a","c":"watch"}"#, binding: binding) }
                == .invalidField)
        #expect(
            refusal { _ = try decodeEvent(#"{"id":1,"c":"widget"}"#, binding: binding) }
                == .missingField)
    }
}

/// A text of digits in JSON.
private func longText(_ start: String, zeros: Int, _ end: String = "") -> String {
    "\"" + start + String(repeating: "0", count: zeros) + end + "\""
}
