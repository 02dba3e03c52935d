// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel
internal import Simdjson

// The suppressions topic's records: which device tokens are dead, and why. Keys are
// `RecordKey.token`.

extension RecordFormat {
    package static var suppression: RecordFormat {
        RecordFormat(
            "suppression", title: "Suppression",
            """
            Why one token is sent nothing: the value of a record of the suppressions topic, whose key \
            is `environment/apnsTopic/tokenHex`. A null value revokes it. Its partition is that of \
            its key by `murmur2_random`: [kafka.md](kafka.md#partitioner).
            """, fields: SuppressionField.self, example: exampleSuppression)
    }
}

package enum SuppressionField: UInt8, RecordField {
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
                The `registeredAt` of the registration under which the push was sent, or the \
                record's timestamp if it is more than two hours after that. Registrations up to \
                that time are suppressed.
                """)
        }
    }
}

extension TokenRecordDecoder {
    /// Decodes a record of the suppressions topic; nil for a tombstone, which revokes the
    /// suppression.
    package mutating func suppression(
        key: UnsafeRawBufferPointer?, value: UnsafeRawBufferPointer?, timestamp: WallTime,
        into tokenKey: inout TokenKey
    ) throws(UnreadableRecord) -> Suppression? {
        guard let object = try object(key, value, &tokenKey) else { return nil }
        var suppression = try Suppression(MemberReader(object))
        suppression.registeredAt = RecordMoment.registeredAt(
            suppression.registeredAt, writtenAt: timestamp, .ofSuppression)
        return suppression
    }
}

extension Suppression {
    fileprivate init(_ fields: borrowing MemberReader<SuppressionField>) throws(UnreadableRecord) {
        try fields.checkVersion(.v)
        self.init(
            status: UInt16(try fields.integer(.status, in: RecordLimits.statuses)),
            reason: String(try fields.text(.reason, bytes: RecordLimits.reasonBytes)),
            apnsTimestamp: try fields.optionalInstant(.apnsTimestamp),
            registeredAt: try fields.instant(.registeredAt))
    }
}

package enum SuppressionEncoder {
    package static func value(_ suppression: Suppression) -> [UInt8] {
        JSONWriter.object(of: SuppressionField.self) { json in
            json.member(.v, RecordLimits.version)
            json.member(.status, suppression.status)
            json.member(.reason, suppression.reason)
            json.member(.apnsTimestamp, suppression.apnsTimestamp)
            json.member(.registeredAt, suppression.registeredAt)
        }
    }
}
