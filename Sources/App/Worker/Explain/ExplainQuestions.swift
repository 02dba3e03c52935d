// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FoundationEssentials
internal import Pipeline
internal import PushModel
internal import RecordFormats

extension TokenQuestion {
    /// Reads the query of `GET /explain`.
    init(query: [String: String]) throws(RefusedQuestion) {
        let known = ["subject", "installation", "tokenID", "app", "environment", "handler"]
        for name in query.keys where !known.contains(name) {
            let shown = String(name.unicodeScalars.prefix(64)).printable
            throw RefusedQuestion("'\(shown)' is no parameter: \(known.joined(separator: ", "))")
        }
        let (app, environment) = (query["app"], try Self.environment(query["environment"]))
        switch (query["subject"], query["installation"], query["tokenID"]) {
        case (let subject?, nil, nil):
            let bytes = Array(subject.utf8)
            guard RecordLimits.subjectBytes.contains(bytes.count) else {
                throw RefusedQuestion("a subject has 1 to \(RecordLimits.subjectBytesMax) bytes")
            }
            self = .subject(bytes, app: app)
        case (nil, let installation?, nil):
            for part in [installation, query["handler"]] {
                guard let part, !RecordKey.isPart(part) else { continue }
                throw RefusedQuestion(
                    "an installation and a handler have 1 to 128 of the characters A-Z a-z 0-9 . _ "
                        + "~ -, since they are parts of a record's key")
            }
            self = .installation(
                installation, app: app, environment: environment, handler: query["handler"])
        case (nil, nil, let tokenID?):
            // A number could have a sign.
            guard tokenID.utf8.count == 16, tokenID.allSatisfy(\.isHexDigit),
                let number = UInt64(tokenID, radix: 16)
            else {
                throw RefusedQuestion(
                    "tokenID is the first 16 hexadecimal digits of SHA-256 of the token")
            }
            self = .token(number)
        default:
            throw RefusedQuestion("ask about one of: subject, installation, tokenID")
        }
    }

    private static func environment(
        _ name: String?
    ) throws(RefusedQuestion) -> PushEnvironment? {
        guard let name else { return nil }
        guard let environment = PushEnvironment(name: name) else {
            throw RefusedQuestion("environment is production or development")
        }
        return environment
    }
}

/// A record that somebody asks about: the body of `POST /explain`.
package struct EventQuestion: Sendable {
    package var topic: String?
    package var key: [UInt8]?
    package var value: [UInt8]?
    package var headers: [(name: String, value: [UInt8])] = []
    /// The record's time; nil for now.
    var time: WallTime?

    package init() {}

    private struct Body: Codable {
        struct Header: Codable {
            var name: String
            var value: String
        }

        var topic: String?
        var key: String?
        var value: String?
        /// In place of `value`, for one that is not text.
        var valueBase64: String?
        var headers: [Header]?
        var time: String?
    }

    init(body: [UInt8]) throws(RefusedQuestion) {
        guard let body = try? JSONDecoder().decode(Body.self, from: Data(body)) else {
            throw RefusedQuestion(
                "the body is a JSON object with topic, key, value (or valueBase64), headers (a list "
                    + "of name and value) and time; each may be left out")
        }
        topic = body.topic
        key = body.key.map { Array($0.utf8) }
        value = body.value.map { Array($0.utf8) }
        if let text = body.valueBase64 {
            guard let bytes = Data(base64Encoded: text) else {
                throw RefusedQuestion("valueBase64 is not Base64")
            }
            value = Array(bytes)
        }
        headers = (body.headers ?? []).map { ($0.name, Array($0.value.utf8)) }
        if let text = body.time {
            guard let time = WallTime(rfc3339: text) else {
                throw RefusedQuestion("time is an RFC 3339 instant")
            }
            self.time = time
        }
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
