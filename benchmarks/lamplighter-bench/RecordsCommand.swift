// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import ArgumentParser
import Foundation
import PushModel
import SchemaCodecs
import Simdjson

/// The same record in JSON, Avro and Protobuf, from its bytes to three of its fields, and to the event
/// that a binding makes of it.
struct RecordsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "records",
        abstract: "Reads three fields of a record of twelve, as JSON, Avro and Protobuf.")

    @Option(help: "How many records are read in each way.")
    var rounds = 500_000

    @Option(help: "Reads only the events whose names have this in them, to be profiled.")
    var only: String?

    func run() throws {
        var figures = Figures()
        if only == nil { try addFields(to: &figures) }
        for event in try SampleEvent.all() where only.map(event.name.contains) ?? true {
            figures.events.append(
                Figures.Event(name: event.name, nanoseconds: try time(event.reading())))
        }
        try Report.print(figures)
    }

    private func addFields(to figures: inout Figures) throws {
        let json = try SampleOrder.json()
        var parser = JSONParser()
        figures.json = try time {
            try json.withUnsafeBytes { try SampleOrder.readFields(of: $0, &parser) }
        }
        figures.jsonBytes = json.count
        let avro = SampleOrder.framed(SampleOrder.avro)
        let protobuf = SampleOrder.framed([0] + SampleOrder.protobuf)
        figures.avroBytes = avro.count
        figures.protobufBytes = protobuf.count
        figures.avroWhole = try time(avro, .avro, [""])
        figures.avroWanted = try time(avro, .avro, SampleOrder.wanted)
        figures.protobufWhole = try time(protobuf, .protobuf, [""])
        figures.protobufWanted = try time(protobuf, .protobuf, SampleOrder.wanted)
    }

    private struct Figures: Encodable {
        var jsonBytes = 0
        var avroBytes = 0
        var protobufBytes = 0
        /// Nanoseconds of CPU per record.
        var json = 0.0
        var avroWhole = 0.0
        var avroWanted = 0.0
        var protobufWhole = 0.0
        var protobufWanted = 0.0
        /// The first is what the others are compared with.
        var events: [Event] = []

        struct Event: Encodable {
            var name: String
            var nanoseconds: Double
        }
    }

    private func time(
        _ record: [UInt8], _ language: SchemaLanguage, _ pointers: [String]
    ) throws -> Double {
        let schema = try RecordSchema(
            SchemaText(
                language: language,
                text: language == .avro ? SampleOrder.avroSchema : SampleOrder.protobufSchema))
        var decoder = RecordDecoder(projections: [Projection(pointers: pointers)!])
        var parser = JSONParser()
        return try time {
            try record.withUnsafeBytes { bytes in
                let decoded = try decoder.decode(bytes, as: language) { _ in .known(schema) }
                guard case .json(let json) = decoded else { return false }
                return try SampleOrder.readFields(of: json, &parser)
            }
        }
    }

    private func time(_ read: () throws -> Bool) throws -> Double {
        let before = ProcessUsage.cpuMicroseconds
        for _ in 0..<rounds where try !read() {
            throw BenchError("a record says otherwise")
        }
        return Double(ProcessUsage.cpuMicroseconds - before) * 1000 / Double(rounds)
    }
}

/// An order of twelve fields.
enum SampleOrder {
    static let wanted = ["/orderId", "/status", "/customerId"]

    private static let pointers = wanted.map { JSONPointer($0)! }

    /// What a binding with a subject template does with a record.
    static func readFields(
        of json: UnsafeRawBufferPointer, _ parser: inout JSONParser
    ) throws -> Bool {
        let document = try parser.parse(json)
        return document[pointers[0]]?.string?.count == 36
            && document[pointers[1]]?.string?.count == 7
            && document[pointers[2]]?.integer == 987_654_321
    }

    private static let id = "7f6c1e9a-52b3-4c0e-9a74-0d3f8c5b2e11"

    static func json() throws -> [UInt8] {
        let text = """
            {"orderId":"\(id)","status":"SHIPPED","customerId":987654321,\
            "createdAt":1795000000123,"updatedAt":1795000123456,"total":129.95,"currency":"EUR",\
            "express":true,"note":null,"email":"jane.doe@example.com",\
            "tags":["gift","fragile","signed"],\
            "address":{"street":"1 Long Street","city":"Cologne","postcode":"50667","country":"DE"}}
            """
        return Array(text.utf8)
    }

    static let avroSchema = Array(
        """
        {"type":"record","name":"Order","namespace":"com.shop","fields":[
          {"name":"orderId","type":"string"},
          {"name":"status","type":{"type":"enum","name":"Status","symbols":["NEW","PAID","SHIPPED"]}},
          {"name":"customerId","type":"long"},
          {"name":"createdAt","type":{"type":"long","logicalType":"timestamp-millis"}},
          {"name":"updatedAt","type":{"type":"long","logicalType":"timestamp-millis"}},
          {"name":"total","type":"double"},{"name":"currency","type":"string"},
          {"name":"express","type":"boolean"},{"name":"note","type":["null","string"]},
          {"name":"email","type":["null","string"]},
          {"name":"tags","type":{"type":"array","items":"string"}},
          {"name":"address","type":{"type":"record","name":"Address","fields":[
            {"name":"street","type":"string"},{"name":"city","type":"string"},
            {"name":"postcode","type":"string"},{"name":"country","type":"string"}]}}]}
        """.utf8)

    static let protobufSchema = Array(
        """
        syntax = "proto3";
        message Order {
          enum Status { NEW = 0; PAID = 1; SHIPPED = 2; }
          message Address { string street = 1; string city = 2; string postcode = 3; string country = 4; }
          string order_id = 1; Status status = 2; int64 customer_id = 3; int64 created_at = 4;
          int64 updated_at = 5; double total = 6; string currency = 7; bool express = 8;
          optional string note = 9; optional string email = 10; repeated string tags = 11;
          Address address = 12;
        }
        """.utf8)

    static func framed(_ content: [UInt8]) -> [UInt8] { [0, 0, 0, 0, 1] + content }

    private static func varint(_ value: UInt64) -> [UInt8] {
        value < 0x80 ? [UInt8(value)] : [UInt8(value & 0x7F) | 0x80] + varint(value >> 7)
    }

    private static func long(_ value: Int64) -> [UInt8] { varint(UInt64(value) << 1) }

    private static func text(_ text: String) -> [UInt8] { long(Int64(text.utf8.count)) + text.utf8 }

    private static func double(_ value: Double) -> [UInt8] {
        (0..<8).map { UInt8(truncatingIfNeeded: value.bitPattern >> ($0 * 8)) }
    }

    static let avro: [UInt8] = {
        var bytes = text(id) + long(2) + long(987_654_321) + long(1_795_000_000_123)
        bytes += long(1_795_000_123_456) + double(129.95) + text("EUR") + [1] + long(0)
        bytes += long(1) + text("jane.doe@example.com")
        bytes += long(3) + text("gift") + text("fragile") + text("signed") + long(0)
        return bytes + text("1 Long Street") + text("Cologne") + text("50667") + text("DE")
    }()

    private static func field(_ number: UInt64, _ text: String) -> [UInt8] {
        varint(number << 3 | 2) + varint(UInt64(text.utf8.count)) + text.utf8
    }

    static let protobuf: [UInt8] = {
        var bytes = field(1, id) + varint(2 << 3) + varint(2) + varint(3 << 3) + varint(987_654_321)
        bytes += varint(4 << 3) + varint(1_795_000_000_123)
        bytes += varint(5 << 3) + varint(1_795_000_123_456)
        bytes += varint(6 << 3 | 1) + double(129.95) + field(7, "EUR") + varint(8 << 3) + [1]
        bytes += field(10, "jane.doe@example.com")
        bytes += field(11, "gift") + field(11, "fragile") + field(11, "signed")
        let address =
            field(1, "1 Long Street") + field(2, "Cologne") + field(3, "50667") + field(4, "DE")
        return bytes + varint(12 << 3 | 2) + varint(UInt64(address.count)) + address
    }()
}
