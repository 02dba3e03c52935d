// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Intake
import PushModel
import SchemaCodecs

/// A record with its topic's binding: what the planner does with it before it looks for tokens.
struct SampleEvent {
    let name: String
    private let binding: TopicBinding
    private let key: [UInt8]
    private let value: [UInt8]

    static func all() throws -> [SampleEvent] {
        let key = Array("order-7f6c1e9a".utf8)
        let json = try SampleOrder.json()
        let avro = SampleOrder.framed(SampleOrder.avro)
        let protobuf = SampleOrder.framed([0] + SampleOrder.protobuf)
        let subject = try SubjectTemplate("order-{/orderId}")
        let plain = TopicBinding(decode: .json, subject: subject)
        var filtered = plain
        filtered.conditions = [
            RecordCondition(field: FieldPath("/status")!, tests: [.isOneOf([.text("SHIPPED")])]),
            RecordCondition(field: FieldPath("/total")!, tests: [.above(0)]),
        ]
        var payload = filtered
        payload.push.payload = try PushTemplate(
            .map([
                (
                    "aps",
                    .map([
                        (
                            "alert",
                            .map([
                                ("title-loc-key", .text("ORDER_SENT")),
                                ("loc-args", .list([.text("{/orderId}"), .text("{/status}")])),
                            ])
                        ), ("sound", .text("default")), ("thread-id", .text("order-{/orderId}")),
                    ])
                ), ("customer", .text("{/customerId}")),
            ]))
        payload.push.collapseID = try SubjectTemplate("{/orderId}")
        func with(_ schema: SchemaLanguage, _ binding: TopicBinding) -> TopicBinding {
            var copy = binding
            copy.valueSchema = schema
            return copy
        }
        var rows = plain
        rows.decode = .debezium
        rows.conditions = [
            RecordCondition(field: FieldPath("/status")!, tests: [.changed(true)])
        ]
        let before = String(decoding: json, as: UTF8.self).replacing("SHIPPED", with: "PAID")
        let change = Array(
            #"{"before":\#(before),"after":\#(String(decoding: json, as: UTF8.self)),"op":"u","ts_ms":1}"#
                .utf8)
        return [
            SampleEvent(
                name: "Lamplighter's own event, with its subject", binding: .standard, key: key,
                value: Array(#"{"v":1,"subject":"order-7f6c1e9a"}"#.utf8)),
            SampleEvent(
                name: "nothing but a key", binding: TopicBinding(decode: .key), key: key,
                value: json),
            SampleEvent(name: "JSON, subject", binding: plain, key: key, value: json),
            SampleEvent(
                name: "JSON, subject and conditions", binding: filtered, key: key, value: json),
            SampleEvent(
                name: "JSON, subject, conditions and payload", binding: payload, key: key,
                value: json),
            SampleEvent(
                name: "JSON, a change of a row (Debezium)", binding: rows, key: key, value: change),
            SampleEvent(name: "Avro, subject", binding: with(.avro, plain), key: key, value: avro),
            SampleEvent(
                name: "Avro, subject, conditions and payload", binding: with(.avro, payload),
                key: key, value: avro),
            SampleEvent(
                name: "Protobuf, subject, conditions and payload",
                binding: with(.protobuf, payload), key: key, value: protobuf),
        ]
    }

    /// What reads the record once, and says whether it is an event.
    func reading() throws -> () throws -> Bool {
        var routing = RoutingTable()
        routing.add(credential: "c", apps: ["com.shop"], environments: [.production])
        let schemas = [
            SchemaLanguage.avro: SampleOrder.avroSchema,
            .protobuf: SampleOrder.protobufSchema,
        ]
        let text = binding.valueSchema.flatMap { schemas[$0] } ?? SampleOrder.avroSchema
        let schema = try RecordSchema(
            SchemaText(language: binding.valueSchema ?? .avro, text: text))
        let reader = Reader(
            try EventDecoder(
                bindings: [binding], routing: routing, settings: EventSettings(),
                schemas: { _ in .known(schema) }))
        return { try reader.read(key, value) }
    }

    private final class Reader {
        private var decoder: EventDecoder
        private let now = WallTime(milliseconds: 1_795_000_000_000)

        init(_ decoder: consuming EventDecoder) { self.decoder = decoder }

        func read(_ key: [UInt8], _ value: [UInt8]) throws -> Bool {
            try key.withUnsafeBytes { key in
                try value.withUnsafeBytes { value in
                    let record = EventRecord(binding: 0, key: key, value: value, timestamp: now)
                    guard decoder.awaitedSchema(of: record) == nil else { return false }
                    return try decoder.decode(record, now: now, header: { _ in nil }) != nil
                }
            }
        }
    }
}
