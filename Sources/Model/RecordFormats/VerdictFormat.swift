// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel
internal import Simdjson

// The verdicts topic's records: what is known against one token. Keys are `RecordKey.token`.

extension RecordFormat {
    package static var verdict: RecordFormat {
        RecordFormat(
            "verdict", title: "Verdict",
            """
            What is known against one token: the value of a record of the verdicts topic, whose key \
            is `environment/apnsTopic/tokenHex`. A null value revokes it.
            """, fields: VerdictField.self, example: exampleVerdict)
    }
}

package enum VerdictField: UInt8, RecordField {
    case v, status, reason, apnsTimestamp, registeredAt
    package static let table = NameTable<Self>()

    package var row: FieldRow {
        switch self {
        case .v: .version
        case .status:
            .required(
                "status", .integer(RecordLimits.statuses), "The HTTP status that APNs answered.")
        case .reason: .required("reason", .text(RecordLimits.reasonBytes), "Apple's word.")
        case .apnsTimestamp: .optional("apnsTimestamp", .instant, "The `timestamp` of a 410.")
        case .registeredAt:
            .required(
                "registeredAt", .instant,
                """
                That of the registration the push was sent under: registrations not later are \
                suppressed.
                """)
        }
    }
}

extension TokenRecordDecoder {
    /// Nil revokes what was known against the token.
    package mutating func verdict(
        key: UnsafeRawBufferPointer?, value: UnsafeRawBufferPointer?, into tokenKey: inout TokenKey
    ) throws(UnreadableRecord) -> Verdict? {
        guard let object = try object(key, value, &tokenKey) else { return nil }
        return try Verdict(MemberReader(object))
    }
}

extension Verdict {
    fileprivate init(_ fields: borrowing MemberReader<VerdictField>) throws(UnreadableRecord) {
        try fields.checkVersion(.v)
        self.init(
            status: UInt16(try fields.integer(.status, in: RecordLimits.statuses)),
            reason: String(try fields.text(.reason, bytes: RecordLimits.reasonBytes)),
            apnsTimestamp: try fields.optionalInstant(.apnsTimestamp),
            registeredAt: try fields.instant(.registeredAt))
    }
}

package enum VerdictEncoder {
    package static func value(_ verdict: Verdict) -> [UInt8] {
        JSONWriter.object(of: VerdictField.self) { json in
            json.member(.v, RecordLimits.version)
            json.member(.status, verdict.status)
            json.member(.reason, verdict.reason)
            json.member(.apnsTimestamp, verdict.apnsTimestamp)
            json.member(.registeredAt, verdict.registeredAt)
        }
    }
}
