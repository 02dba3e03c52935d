// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel
internal import Simdjson

// The deferred topic's records: `DeferredPush`. Keys are `RecordKey.deferred`.

extension RecordFormat {
    package static var deferred: RecordFormat {
        RecordFormat(
            "deferred", title: "Deferred push",
            """
            A push that waits longer than it may hold an offset: the value of a record of the \
            deferred topic, whose key is `environment/apnsTopic/tokenHex`, with the 16 digits of its \
            coalescing key as a fourth part for a push with a payload. A null value ends it; \
            the header `\(DeferredPush.endedHeader)` names the last record of the key that it ends. \
            On a record that its owner has written again, that header names the offset at which its \
            content was first written. A tombstone with the header \
            `\(DeferredPush.endedPayloadHeader)` ends a payload that was read no later than \
            this says, in milliseconds since 1970. The header `\(DeferredPush.droppedHeader)` says that \
            the push was dropped, not sent.
            """, fields: DeferredField.self, example: exampleDeferred)
    }
}

package enum DeferredField: UInt8, RecordField {
    case v, notBefore, expiresAt
    case tokenClass, lastSentAt, attempts, payload, payloadAt, payloadSource, collapseID, priority
    case apnsExpiration, source, sourceAt, subject, subjectBase64, payloadOf
    case payloadOfBase64, installation, firstAt, sent
    package static let table = NameTable<Self>()

    package var row: FieldRow {
        switch self {
        case .v: .version
        case .notBefore: .required("notBefore", .instant, "When it may be sent.")
        case .expiresAt: .required("expiresAt", .instant, "When it is worthless.")
        case .tokenClass: .required("class", .oneOf(TokenClass.words), "The class of the token.")
        case .lastSentAt:
            .optional(
                "lastSentAt", .instant,
                """
                When the token was last sent a push, or until when one may have been: the minimum gap \
                counts from then.
                """)
        case .attempts: .required("attempts", .integer(RecordLimits.attempts))
        case .payload:
            .optional("payload", .body, "The push's body; absent for one without a payload.")
        case .payloadAt:
            .optional(
                "payloadAt", .instant,
                """
                When the event that brought the payload was read: of two payloads of one key the \
                later wins.
                """)
        case .payloadSource:
            .optional(
                "payloadSource", .object(SourceField.rows),
                "The event that brought the payload, where it is not `source`.")
        case .collapseID:
            .optional("collapseID", .collapseID, "`apns-collapse-id`; only with a payload.")
        case .priority:
            .optional(
                "priority", .oneOfNumbers(DeferredPush.priorities),
                "`apns-priority`; 0 leaves the header out; if absent, the push type's own.")
        case .apnsExpiration:
            .optional(
                "apnsExpiration", .oneOf(DeferredPush.expirations.map(\.word)),
                "How `apns-expiration` is filled in; if absent, the push type's own.")
        case .source:
            .optional("source", .object(SourceField.rows), "The oldest event it answers for.")
        case .sourceAt: .optional("sourceAt", .instant, "When the event of `source` was written.")
        case .subject:
            .optional("subject", .text(0...RecordLimits.subjectBytesMax), "That event's subject.")
        case .subjectBase64:
            .optional(
                "subjectBase64", .base64(bytesMax: RecordLimits.subjectBytesMax),
                "The subject where it is not UTF-8.")
        case .payloadOf:
            .optional(
                "payloadOf", .text(0...RecordLimits.subjectBytesMax),
                """
                The subject of the event that brought the payload, where it is not `subject`: the push \
                is sent only while its token shows it.
                """)
        case .payloadOfBase64:
            .optional(
                "payloadOfBase64", .base64(bytesMax: RecordLimits.subjectBytesMax),
                "The same, where it is not UTF-8.")
        case .installation:
            .optional(
                "installation", .keyPart,
                """
                What the event that brought the payload names instead of a subject: the push is sent \
                only while its token is one of this installation's.
                """)
        case .firstAt: .optional("firstAt", .instant, "When it was first sent to APNs.")
        case .sent:
            .optional(
                "sent", .flag,
                """
                The push was sent, and nothing is owed: the record keeps `lastSentAt` until the \
                minimum gap is over.
                """)
        }
    }
}

extension TokenRecordDecoder {
    /// Decodes a record of the deferred topic; nil for a tombstone, which ends the wait of the
    /// push.
    package mutating func deferred(
        key: UnsafeRawBufferPointer?, value: UnsafeRawBufferPointer?, into tokenKey: inout TokenKey
    ) throws(UnreadableRecord) -> DeferredPush? {
        guard let object = try object(key, value, &tokenKey, isDeferred: true) else { return nil }
        let push = try DeferredPush(MemberReader(object))
        guard (tokenKey.coalescingKey == 0) == (push.payload == nil) else {
            throw UnreadableRecord(
                .keyMismatch,
                "the key must have a fourth part where there is a payload, and only there")
        }
        return push
    }
}

extension DeferredPush {
    fileprivate static let priorities: [Int64] = [0, 1, 5, 10]
    fileprivate static let expirations: [ExpirationRule] = [.none, .immediate, .deadline]

    fileprivate init(_ fields: borrowing MemberReader<DeferredField>) throws(UnreadableRecord) {
        try fields.checkVersion(.v)
        let word = try fields.required(.tokenClass)
        guard let tokenClass = word.string.flatMap(TokenClass.init) else {
            throw .field("class", "a class of token")
        }
        self.init(
            notBefore: try fields.instant(.notBefore), expiresAt: try fields.instant(.expiresAt),
            tokenClass: tokenClass,
            attempts: Int(try fields.integer(.attempts, in: RecordLimits.attempts)),
            payload: try Self.payload(fields, for: tokenClass))
        lastSentAt = try fields.optionalInstant(.lastSentAt)
        if let value = fields.optional(.sent) {
            guard value.bool == true else { throw .field("sent", "true") }
            isSent = true
        }
        firstAt = try fields.optionalInstant(.firstAt)
        sourceAt = try fields.optionalInstant(.sourceAt)
        payloadAt = try fields.optionalInstant(.payloadAt)
        if let value = fields.optional(.payloadSource) {
            payloadSource = try DeadLetter.Source(value, in: DeferredField.payloadSource)
        }
        if let value = fields.optional(.collapseID) {
            collapseID = try EventFields.collapseID(value)
        }
        priority = try fields.optional(.priority).map(Self.priority)
        if let value = fields.optional(.apnsExpiration) {
            expiration = try ExpirationRule(
                value, among: Self.expirations, in: DeferredField.apnsExpiration)
        }
        if let value = fields.optional(.source) {
            source = try DeadLetter.Source(value, in: DeferredField.source)
        }
        subject =
            try fields.bytes(
                .subject, base64: .subjectBase64, bytesMax: RecordLimits.subjectBytesMax) ?? []
        payloadSubject =
            try fields.bytes(
                .payloadOf, base64: .payloadOfBase64,
                bytesMax: RecordLimits.subjectBytesMax) ?? []
        installation = try fields.optional(.installation).map {
            value throws(UnreadableRecord) in
            String(try value.keyPart(DeferredField.installation))
        }
    }

    private static func payload(
        _ fields: borrowing MemberReader<DeferredField>, for tokenClass: TokenClass
    ) throws(UnreadableRecord) -> EventPayload? {
        guard let value = fields.optional(.payload) else { return nil }
        return try EventPayload(json: value, for: tokenClass)
    }

    private static func priority(_ value: JSONValue) throws(UnreadableRecord) -> UInt8 {
        guard let priority = value.integer, priorities.contains(priority) else {
            throw .field("priority", "0 for none, 1, 5 or 10")
        }
        return UInt8(priority)
    }
}

package enum DeferredEncoder {
    package static func value(_ push: DeferredPush) -> [UInt8] {
        assert(
            RecordLimits.attempts.contains(Int64(push.attempts))
                && push.priority.map { DeferredPush.priorities.contains(Int64($0)) } ?? true,
            "a deferred push has attempts and a priority that its next owner can read")
        return JSONWriter.object(of: DeferredField.self) { json in
            json.member(.v, RecordLimits.version)
            json.member(.notBefore, push.notBefore)
            json.member(.expiresAt, push.expiresAt)
            json.member(.tokenClass, push.tokenClass.name)
            json.member(.lastSentAt, push.lastSentAt)
            json.member(.attempts, push.attempts)
            json.member(.payload, raw: push.payload?.body)
            json.member(.payloadAt, push.payloadAt)
            json.member(.payloadSource, push.payloadSource)
            json.member(.collapseID, push.collapseID)
            json.member(.priority, push.priority)
            json.member(.apnsExpiration, push.expiration?.word)
            json.member(.source, push.source)
            json.member(.sourceAt, push.sourceAt)
            json.member(
                .subject, bytes: push.subject.isEmpty ? nil : push.subject, base64: .subjectBase64)
            json.member(
                .payloadOf, bytes: push.payloadSubject.isEmpty ? nil : push.payloadSubject,
                base64: .payloadOfBase64)
            json.member(.installation, push.installation)
            json.member(.firstAt, push.firstAt)
            json.member(.sent, flag: push.isSent)
        }
    }
}
