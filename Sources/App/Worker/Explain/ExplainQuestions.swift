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
