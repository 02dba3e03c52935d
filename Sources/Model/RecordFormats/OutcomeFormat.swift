// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// How one push ended: the value of a record of the outcomes topic.
package struct OutcomeRecord: Sendable, Equatable {
    package enum Word: String, CaseIterable, Sendable {
        case accepted, rejected, expired, suppressed, unregistered
        case deadUnconfirmed = "dead_unconfirmed"
        case dropped, unsubscribed
    }

    package var at: WallTime
    package var app: String
    package var environment: PushEnvironment
    package var tokenClass: TokenClass
    package var type: PushType
    /// 16 hexadecimal digits: what names the token to people.
    package var tokenID: String
    package var apnsID: APNSID
    package var outcome: Word
    /// Of the answer that ended the push; nil where none did.
    package var status: UInt16?
    /// Empty where there is none.
    package var reason = ""
    package var attempts = 0
    /// From the writing of the event to the end of the push; nil where the former is not known.
    package var latency: Duration?
    package var subject: [UInt8] = []
    package var eventID: String?
    package var source: DeadLetter.Source?

    package init(
        at: WallTime, app: String, environment: PushEnvironment, tokenClass: TokenClass,
        type: PushType, tokenID: String, apnsID: APNSID, outcome: Word
    ) {
        self.at = at
        self.app = app
        self.environment = environment
        self.tokenClass = tokenClass
        self.type = type
        self.tokenID = tokenID
        self.apnsID = apnsID
        self.outcome = outcome
    }
}

extension RecordFormat {
    package static var outcome: RecordFormat {
        RecordFormat(
            "outcome", title: "Outcome of a push",
            """
            How one push ended: the value of a record of the outcomes topic (`kafka.topics.outcomes`), \
            whose key is `tokenID`. Written by the worker only, where the topic is configured, and read \
            by none. What is written of, and what may be missing, is in \
            [operations.md](operations.md#outcomes-of-pushes). Bytes that are not UTF-8 are written as \
            base64 under the name with `Base64` appended.
            """, fields: OutcomeField.self, example: exampleOutcome, isClosed: true)
    }
}

package enum OutcomeField: UInt8, RecordField {
    case v, at, app, environment, tokenClass, type, tokenID, apnsID, outcome, status, reason
    case attempts, latencyMs, subject, subjectBase64, eventID, source
    package static let table = NameTable<Self>()

    package var row: FieldRow {
        switch self {
        case .v: .version
        case .at: .required("at", .instant, "When the push ended.")
        case .app: .required("app", .keyPart, "Bundle identifier.")
        case .environment: .required("environment", .environment)
        case .tokenClass: .required("class", .oneOf(TokenClass.words), "The class of the token.")
        case .type:
            .required("type", .text(RecordLimits.reasonBytes), "The value of `apns-push-type`.")
        case .tokenID:
            .required(
                "tokenID", .tokenID,
                "The first 8 bytes of the SHA-256 of the device token, which is nowhere in the record."
            )
        case .apnsID:
            .required(
                "apnsID", .text(APNSID.textBytes...APNSID.textBytes),
                "The `apns-id` of each of its requests, also where none was sent.")
        case .outcome:
            .required(
                "outcome", .oneOf(OutcomeRecord.Word.allCases.map(\.rawValue)),
                "As `lamplighter_pushes_total` counts it.")
        case .status:
            .optional(
                "status", .integer(RecordLimits.statuses),
                "Of the answer that ended the push; absent where none did.")
        case .reason:
            .optional(
                "reason", .text(RecordLimits.reasonBytes), "Apple's word, or the worker's own.")
        case .attempts:
            .required(
                "attempts", .integer(RecordLimits.attempts),
                """
                The attempts that `delivery.attemptsMax` counts, and the request that ended it.
                """)
        case .latencyMs:
            .optional(
                "latencyMs", .integer(RecordLimits.latencies),
                """
                Milliseconds from the event's timestamp in Kafka to `at`; 0 also where the clocks of two \
                hosts disagree, absent where the timestamp is not known.
                """)
        case .subject:
            .optional(
                "subject", .text(0...RecordLimits.subjectBytesMax),
                "What changed; absent where nobody shows it any more.")
        case .subjectBase64:
            .optional(
                "subjectBase64", .base64(bytesMax: RecordLimits.subjectBytesMax),
                "The same, where it is not UTF-8.")
        case .eventID:
            .optional(
                "eventID", .text(RecordLimits.subjectBytes),
                """
                The `id` of the event at `source`, where it had one and is among the latest that the \
                worker has read.
                """)
        case .source:
            .optional(
                "source", .object(SourceField.rows), "The oldest event that the push answers for.")
        }
    }
}

package enum OutcomeEncoder {
    package static func value(_ record: OutcomeRecord) -> [UInt8] {
        JSONWriter.object(of: OutcomeField.self) { json in
            json.member(.v, RecordLimits.version)
            json.member(.at, record.at)
            json.member(.app, record.app)
            json.member(.environment, record.environment.name)
            json.member(.tokenClass, record.tokenClass.name)
            json.member(.type, record.type.name)
            json.member(.tokenID, record.tokenID)
            json.member(.apnsID, record.apnsID.text)
            json.member(.outcome, record.outcome.rawValue)
            json.member(.status, record.status)
            json.member(.reason, record.reason.isEmpty ? nil : record.reason)
            json.member(.attempts, record.attempts)
            json.member(.latencyMs, record.latency.map { max(0, Int($0 / .milliseconds(1))) })
            json.member(
                .subject, bytes: record.subject.isEmpty ? nil : record.subject,
                base64: .subjectBase64)
            json.member(.eventID, record.eventID)
            json.member(.source, record.source)
        }
    }
}
