// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Configuration
internal import Foundation
internal import Intake
internal import PushModel
internal import SchemaCodecs
internal import SchemaRegistry
internal import Testing

@testable internal import Worker

@Suite struct `The configuration of a schema registry` {
    private func file(_ text: String) throws -> String {
        let file = FileManager.default.temporaryDirectory
            .appending(path: "password-\(UUID().uuidString)")
        try text.write(to: file, atomically: true, encoding: .utf8)
        return file.path
    }

    private func problem(_ yaml: String) -> String {
        do {
            _ = try configuration(yaml)
            return ""
        } catch { return "\(error)" }
    }

    @Test func `its settings are those of the configuration`() throws {
        let password = try file("s3cret:with colon\n")
        let read = try configuration(
            """
            kafka:
              schemaRegistry:
                urls: ["https://a:8081", "http://b.example/registry"]
                user: key
                passwordFile: \(password)
              events:
                orders: {valueSchema: avro, keySchema: protobuf, subject: "order-{/id}"}
            """)
        let settings = try #require(read.kafka.schemaRegistry.settings)
        #expect(settings.urls == ["https://a:8081", "http://b.example/registry"])
        #expect(settings.user == "key" && settings.password?.text == "s3cret:with colon")
        #expect(!read.description.contains("s3cret"))
        let binding = try #require(read.kafka.events["orders"])
        #expect(binding.valueSchema == .avro && binding.keySchema == .schema(.protobuf))
        #expect(try configuration("").kafka.schemaRegistry.settings == nil)
    }

    @Test(arguments: [
        (
            "kafka: {events: {o: {valueSchema: avro, subject: \"{/id}\"}}}",
            "needs a schema registry"
        ),
        ("kafka: {schemaRegistry: {urls: [\"ftp://a\"]}}", "kafka.schemaRegistry.urls"),
        ("kafka: {schemaRegistry: {urls: [\"http://u:p@a\"]}}", "kafka.schemaRegistry.urls"),
        (
            "kafka: {schemaRegistry: {urls: [\"http://a\"], user: b}}",
            "passwordFile: is missing beside"
        ),
        ("kafka: {schemaRegistry: {user: b}}", "kafka.schemaRegistry.urls: is missing"),
        (
            "kafka: {schemaRegistry: {urls: [\"http://a\"], user: b, passwordFile: /none}}",
            "kafka.schemaRegistry.passwordFile"
        ),
        (
            "kafka: {schemaRegistry: {urls: [\"http://a\"]}, events: {o: {valueSchema: avro}}}",
            "keySchema, valueSchema: they are for records"
        ),
    ])
    func `what cannot be is told with its key`(yaml: String, words: String) {
        #expect(problem(yaml).contains(words), "\(problem(yaml))")
    }

    @Test func `of JSON Schema none is needed`() {
        #expect(
            problem("kafka: {events: {o: {valueSchema: jsonSchema, subject: \"{/id}\"}}}").isEmpty)
    }

    @Test(arguments: ["json", "int64", "int32"])
    func `of keys without a schema none is needed`(format: String) throws {
        let yaml = "kafka: {events: {o: {keySchema: \(format), decode: key}}}"
        #expect(problem(yaml).isEmpty)
        #expect(try configuration(yaml).description.contains(format))
        #expect(
            problem("kafka: {events: {o: {keySchema: int16, decode: key}}}").contains(
                "one of avro, protobuf, jsonSchema, json, int64, int32"))
    }

    @Test func `a password of several lines is refused without being shown`() throws {
        let password = try file("one-secret\ntwo-secret\n")
        let text = problem(
            "kafka: {schemaRegistry: {urls: [\"http://a\"], user: b, passwordFile: \(password)}}")
        #expect(text.contains("does not hold one line") && !text.contains("secret\n"))
    }
}
