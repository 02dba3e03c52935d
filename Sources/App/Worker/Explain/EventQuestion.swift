// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FoundationEssentials
internal import PushModel
internal import Simdjson

/// A record that somebody asks about: the body of `POST /explain`.
package struct EventQuestion: Sendable {
    package var topic: String?
    /// UTF-8, as JSON texts are.
    package var key: [UInt8]?
    package var value: [UInt8]?
    package var headers: [(name: String, value: [UInt8])] = []
    /// The record's time; nil for now.
    var time: WallTime?

    package init() {}

    // MARK: Reading

    /// Reads a body. A member that it does not know, or that occurs twice, is refused: the answer would
    /// be about another record than the one that was meant.
    init(body: [UInt8]) throws(RefusedQuestion) {
        var parser = JSONParser(bytesMax: max(body.count, 1024), depthMax: 16)
        let question = body.withUnsafeBytes { bytes -> Result<EventQuestion, RefusedQuestion> in
            do throws(RefusedQuestion) {
                return .success(try EventQuestion(Self.object(in: bytes, by: &parser)))
            } catch {
                return .failure(error)
            }
        }
        self = try question.get()
    }

    private static func object(
        in bytes: UnsafeRawBufferPointer, by parser: inout JSONParser
    ) throws(RefusedQuestion) -> JSONObject {
        do throws(JSONError) {
            if let object = try parser.parse(bytes).object { return object }
        } catch {
            // Bytes that are not UTF-8 would be replaced, and the answer be about another key.
            if error.code == .invalidUTF8 {
                throw RefusedQuestion(
                    "the body is not UTF-8; a value that is none goes into valueBase64, and a key or "
                        + "a header that is none cannot be asked about")
            }
        }
        throw RefusedQuestion(remedy)
    }

    private static let remedy =
        "the body is a JSON object with topic, key, value (or valueBase64), headers (a list of name "
        + "and value) and time; each may be left out"

    private init(_ object: JSONObject) throws(RefusedQuestion) {
        let members = try Self.members(
            of: object, named: ["topic", "key", "value", "valueBase64", "headers", "time"])
        topic = try Self.text(members["topic"])
        key = try Self.text(members["key"]).map { Array($0.utf8) }
        value = try Self.text(members["value"]).map { Array($0.utf8) }
        if let text = try Self.text(members["valueBase64"]) {
            guard value == nil else {
                throw RefusedQuestion("value and valueBase64 are both given: give one of them")
            }
            guard let bytes = Data(base64Encoded: text) else {
                throw RefusedQuestion("valueBase64 is not Base64")
            }
            value = Array(bytes)
        }
        if let list = members["headers"] {
            guard let list = list.array else { throw RefusedQuestion(Self.remedy) }
            for header in list { headers.append(try Self.header(header)) }
        }
        if let text = try Self.text(members["time"]) {
            guard let time = WallTime(rfc3339: text) else {
                throw RefusedQuestion("time is an RFC 3339 instant")
            }
            self.time = time
        }
    }

    private static func header(
        _ value: JSONValue
    ) throws(RefusedQuestion) -> (name: String, value: [UInt8]) {
        guard let object = value.object else { throw RefusedQuestion(remedy) }
        let members = try members(of: object, named: ["name", "value"])
        guard let name = try text(members["name"]), let value = try text(members["value"]) else {
            throw RefusedQuestion("each header has a name and a value")
        }
        return (name, Array(value.utf8))
    }

    /// The members that have a value.
    private static func members(
        of object: JSONObject, named known: [String]
    ) throws(RefusedQuestion) -> [String: JSONValue] {
        var seen: Set<String> = []
        var members: [String: JSONValue] = [:]
        for (key, value) in object {
            let name = String(decoding: key, as: UTF8.self)
            guard known.contains(name) else {
                let shown = String(name.unicodeScalars.prefix(64)).printable
                throw RefusedQuestion("'\(shown)' is no member: \(known.joined(separator: ", "))")
            }
            guard seen.insert(name).inserted else {
                throw RefusedQuestion("'\(name)' occurs twice: give it once")
            }
            if !value.isNull { members[name] = value }
        }
        return members
    }

    private static func text(_ value: JSONValue?) throws(RefusedQuestion) -> String? {
        guard let value else { return nil }
        // Half of a surrogate pair would be replaced, and the answer be about another key.
        guard let bytes = value.string, !value.hasLoneSurrogate else {
            throw RefusedQuestion(remedy)
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    // MARK: Writing

    private struct Body: Encodable {
        struct Header: Encodable {
            var name: String
            var value: String
        }

        var topic: String?
        var key: String?
        /// In place of `value`, since it need not be text.
        var valueBase64: String?
        var headers: [Header]?
        var time: String?
    }

    /// The body of a request that asks this.
    package var body: [UInt8] {
        let body = Body(
            topic: topic, key: key.map { String(decoding: $0, as: UTF8.self) },
            valueBase64: value.map { Data($0).base64EncodedString() },
            headers: headers.map {
                Body.Header(name: $0.name, value: String(decoding: $0.value, as: UTF8.self))
            }, time: time?.rfc3339)
        return ExplainJSON.bytes(body)
    }
}
