// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Intake
internal import PushModel
internal import RecordFormats
internal import Testing

@Suite struct `Foreign records` {
    private func message(_ value: [UInt8], _ binding: TopicBinding = .standard) -> String {
        do {
            _ = try decodeEvent(value, binding: binding)
            return ""
        } catch {
            return (error as? UnreadableRecord)?.message ?? "\(error)"
        }
    }

    private static func utf16(_ text: String, isBig: Bool = false, mark: [UInt8] = []) -> [UInt8] {
        mark
            + text.utf16.flatMap { unit in
                let bytes = [UInt8(truncatingIfNeeded: unit), UInt8(unit >> 8)]
                return isBig ? bytes.reversed() : bytes
            }
    }

    @Test(
        arguments: [
            ([0, 0, 0, 0, 7, 2, 0x31], "valueSchema"),
            ([0, 0, 1, 0x86, 0xA1, 0], "valueSchema"),
            ([0, 0, 0, 0, 0, 0, 0, 0, 9, 2], "valueSchema"),
            (utf16(#"{"v":1}"#), "UTF-16"), (utf16(#"{"v":1}"#, isBig: true), "UTF-16"),
            (utf16(#"{"v":1}"#, mark: [0xFF, 0xFE]), "UTF-16"),
            (utf16(#"{"v":1}"#, isBig: true, mark: [0xFE, 0xFF]), "UTF-16"),
            (utf16("[1,2]"), "UTF-16"), (utf16("[1,2]", isBig: true), "UTF-16"),
            ([0x1F, 0x8B, 8, 0, 0, 0, 0, 0], "gzip"), ([0x28, 0xB5, 0x2F, 0xFD, 4, 0x58], "zstd"),
            // What does not say what it is keeps the parser's words.
            (Array("{".utf8), "JSON"), (Array(#"{"v":1"#.utf8), "JSON"), ([0, 0, 0], "JSON"),
        ] as [([UInt8], String)])
    func `foreign records are named by their first bytes`(value: [UInt8], words: String) {
        #expect(message(value).contains(words), "\(message(value))")
        let template = TopicBinding(
            decode: .json, subject: try! SubjectTemplate("order-{/id}"))
        #expect(message(value, template).contains(words), "\(message(value, template))")
    }

    @Test(arguments: [
        (#"{"ts_ms":1}"#, "a heartbeat"), (#"{"schema":{},"payload":{"ts_ms":1}}"#, "a heartbeat"),
        (#"{"status":"BEGIN","id":"571","ts_ms":1}"#, "a transaction's begin or end"),
        (#"{"schema":{},"payload":{"status":"END","id":"571"}}"#, "a transaction's begin or end"),
        (#"{"source":{},"databaseName":"d","ddl":"CREATE TABLE t"}"#, "a change of the schema"),
        (#"{"source":{},"tableChanges":[]}"#, "a change of the schema"),
        (#"{"id":1}"#, "there is no op"), ("{}", "there is no op"),
    ])
    func `foreign records of a connector are named`(value: String, words: String) {
        let binding = TopicBinding(
            decode: .debezium, subject: try! SubjectTemplate("order-{/id}"))
        #expect(message(Array(value.utf8), binding).contains(words))
    }

    @Test func `foreign records that are a batch of CloudEvents are named`() {
        let batch = #"[{"specversion":"1.0","id":"1","source":"s","type":"t","subject":"door-1"}]"#
        #expect(
            message(Array(batch.utf8), TopicBinding(decode: .cloudevents))
                .contains("a batch of events"))
    }

    @Test(arguments: [
        ("3.5", "a number with a fraction"), (#""3""#, "a text of 1 digit"),
        ("true", "true or false"),
        ("[3]", "an array"), ("{}", "an empty object"),
    ])
    func `foreign records say what stands in a typed field's place`(value: String, shape: String)
        throws
    {
        var binding = TopicBinding(
            decode: .json, subject: try SubjectTemplate("order-{/id}"))
        binding.push.payload = try PushTemplate(
            .map([
                (
                    "aps",
                    .map([
                        ("badge", .map([("$field", .text("/unread")), ("type", .text("integer"))]))
                    ])
                )
            ]))
        let message = message(Array(#"{"id":1,"unread":\#(value)}"#.utf8), binding)
        #expect(
            message.hasPrefix("the push template needs integer at /unread, where the record has")
                && message.contains(shape), "\(message)")
    }
}
