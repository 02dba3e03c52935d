// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel
internal import Simdjson

/// A push that waits longer than it may hold an offset: the value of a record of `deferred`. It says
/// all that its next owner needs; what the owner's own configuration says better may be absent.
package struct DeferredPush: Sendable, Equatable {
    package var notBefore: WallTime
    package var expiresAt: WallTime
    package var tokenClass: TokenClass
    /// When the token was last sent a push, for its gap.
    package var lastSentAt: WallTime?
    package var attempts: Int
    /// Nil for "look again".
    package var payload: EventPayload?
    /// When the event that brought the payload was read: of two payloads of one key the later wins.
    package var payloadAt: WallTime?
    /// That event, where it is not `source`.
    package var payloadSource: DeadLetter.Source?
    package var collapseID: String?
    /// `apns-priority`, 0 leaving the header out; nil for the push type's own.
    package var priority: UInt8?
    /// Nil for the push type's own.
    package var expiration: ExpirationRule?
    /// The oldest event it answers for: `apns-id` is made from it, and a dead letter names it.
    package var source: DeadLetter.Source?
    /// Of that event; empty where it is not known.
    package var subject: [UInt8] = []
    /// When it was first sent to APNs.
    package var firstAt: WallTime?

    package init(
        notBefore: WallTime, expiresAt: WallTime, tokenClass: TokenClass, attempts: Int = 0,
        payload: EventPayload? = nil
    ) {
        self.notBefore = notBefore
        self.expiresAt = expiresAt
        self.tokenClass = tokenClass
        self.attempts = attempts
        self.payload = payload
    }

    /// Says all that an earlier one of its key does too: the latest expiry, the highest priority (0,
    /// which leaves the header out, is read as 10), and the payload that was read last.
    package mutating func include(_ earlier: DeferredPush) {
        expiresAt = max(expiresAt, earlier.expiresAt)
        if let own = priority, let other = earlier.priority {
            priority = own == 0 || other == 0 ? 0 : max(own, other)
        }
        guard let readAt = earlier.payloadAt, payloadAt.map({ readAt > $0 }) ?? true else { return }
        payload = earlier.payload
        payloadAt = readAt
        payloadSource = earlier.payloadSource ?? earlier.source
        if payloadSource == source { payloadSource = nil }
        collapseID = earlier.collapseID
        expiration = earlier.expiration
    }

    /// The header of the record that ends a wait. Its value is the offset up to which records of the
    /// key have ended: one that was written meanwhile by another worker is still owed. On a record that
    /// the owner has written again it is the offset of what that says: whatever ends the one ends the
    /// other, or two nulls under way could have a push written again for ever.
    package static let endedHeader = "ended-offset"

    /// The header of a null that ends a payload because a newer one of its key was accepted. Its value
    /// says when that was read, in milliseconds since 1970: a payload that was read later is owed.
    package static let endedPayloadHeader = "ended-payload-at"
}

package enum DeferredField: String, CaseIterable, Sendable {
    case v, notBefore, expiresAt
    case tokenClass = "class"
    case lastSentAt, attempts, payload, payloadAt, payloadSource, collapseID, priority
    case apnsExpiration, source, subject, subjectBase64, firstAt
}

extension DeferredPush {
    init(_ fields: MemberReader) throws(UnreadableRecord) {
        let word = try fields.required("class")
        guard let tokenClass = word.string.flatMap(TokenClass.init) else {
            throw .field("class", "a class of token")
        }
        self.init(
            notBefore: try fields.required("notBefore").instant("notBefore"),
            expiresAt: try fields.required("expiresAt").instant("expiresAt"),
            tokenClass: tokenClass,
            attempts: Int(try fields.required("attempts").integer("attempts", in: 0...1_000_000)),
            payload: try fields.optional("payload").map(EventPayload.init(json:)))
        lastSentAt = try fields.instant("lastSentAt")
        firstAt = try fields.instant("firstAt")
        payloadAt = try fields.instant("payloadAt")
        payloadSource = try fields.optional("payloadSource").map(DeadLetter.Source.init(json:))
        collapseID = try fields.optional("collapseID").map(Self.collapseID)
        priority = try fields.optional("priority").map(Self.priority)
        expiration = try fields.optional("apnsExpiration").map(Self.expiration)
        source = try fields.optional("source").map(DeadLetter.Source.init(json:))
        subject = try fields.bytes(
            "subject", base64: "subjectBase64", bytesMax: RecordLimits.subjectBytesMax)
    }

    static func collapseID(_ value: JSONValue) throws(UnreadableRecord) -> String {
        try EventFields.collapseID(
            value.text("collapseID", bytes: 1...RecordLimits.collapseIDBytesMax))
    }

    private static func priority(_ value: JSONValue) throws(UnreadableRecord) -> UInt8 {
        guard let priority = value.integer, [0, 1, 5, 10].contains(priority) else {
            throw .field("priority", "0 for none, 1, 5 or 10")
        }
        return UInt8(priority)
    }

    private static func expiration(_ value: JSONValue) throws(UnreadableRecord) -> ExpirationRule {
        let rules: [ExpirationRule] = [.none, .immediate, .deadline]
        let known = value.string.flatMap { text in
            rules.first { String(describing: $0) == String(text) }
        }
        guard let known else { throw .field("apnsExpiration", "none, immediate or deadline") }
        return known
    }
}

extension DeadLetter.Source {
    init(json value: JSONValue) throws(UnreadableRecord) {
        guard let object = value.object else { throw .field("source", "an object") }
        let fields = MemberReader(object: object)
        let topic = try fields.required("topic")
            .text("topic", bytes: 1...RecordLimits.kafkaTopicBytesMax)
        self.init(
            topic: String(topic),
            partition: Int32(
                try fields.required("partition").integer("partition", in: 0...Int64(Int32.max))),
            offset: try fields.required("offset").integer("offset", in: 0...Int64.max))
    }
}

/// Values of the deferred topic. Keys are `RecordKey.deferred`.
package enum DeferredEncoder {
    package static func value(_ push: DeferredPush) -> [UInt8] {
        JSONWriter.object { json in
            json.member("v", RecordLimits.version)
            json.member("notBefore", push.notBefore)
            json.member("expiresAt", push.expiresAt)
            json.member("class", push.tokenClass.name)
            json.member("lastSentAt", push.lastSentAt)
            json.member("attempts", push.attempts)
            json.member("payload", raw: push.payload?.body)
            json.member("payloadAt", push.payloadAt)
            json.member("payloadSource", push.payloadSource)
            json.member("collapseID", push.collapseID)
            json.member("priority", push.priority)
            json.member("apnsExpiration", push.expiration.map { String(describing: $0) })
            json.member("source", push.source)
            json.member("subject", bytes: push.subject.isEmpty ? nil : push.subject)
            json.member("firstAt", push.firstAt)
        }
    }
}
