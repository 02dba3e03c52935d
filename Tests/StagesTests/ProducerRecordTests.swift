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
            (.above(2), ["3", "2.5", "18446744073709551615"], ["2", "-3", #""9""#, "null"]),
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
