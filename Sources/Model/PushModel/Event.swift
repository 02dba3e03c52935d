// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// A state change, decoded. Bytes are lent by the record and its decoder until the next record.
package struct Event {
    package var app: AppID
    /// Nil means every environment of the app.
    package var environment: PushEnvironment?
    /// 1 to 256 bytes, opaque, case-sensitive; empty for a kind-wide event.
    package var subject: UnsafeRawBufferPointer
    /// Only targets of these kinds; empty means any.
    package var kinds: [String]
    package var classes: TokenClassSet
    /// It says "this subject changed" and no more, and lives as long as its binding says.
    package var isPlain = false
    /// When it happened: the event's `time`, else the record's timestamp.
    package var time: WallTime
    /// The push is worthless from here on.
    package var expiresAt: WallTime
    /// How long planning waits before it sends: time for the producer's own store to catch up.
    package var delay: Duration
    /// `apns-priority` 1, 5 or 10; nil takes the push type's default.
    package var priority: UInt8?
    /// At most 64 bytes.
    package var collapseID: String?
    /// Overrides the push type's rule: `none` or `deadline`.
    package var expiration: ExpirationRule?
    /// The JSON body, minified; nil for "look again".
    package var payload: EventPayload?
    /// Which part of an event with a large audience this is; nil for a whole event.
    package var shard: EventShard?

    package init(
        app: AppID, subject: UnsafeRawBufferPointer, time: WallTime, expiresAt: WallTime,
        kinds: [String], classes: TokenClassSet, delay: Duration, isPlain: Bool = false
    ) {
        self.app = app
        self.subject = subject
        self.time = time
        self.expiresAt = expiresAt
        self.kinds = kinds
        self.classes = classes
        self.delay = delay
        self.isPlain = isPlain
    }
}

/// A part of an event whose audience was split, and where the whole event was read.
package struct EventShard: Sendable, Equatable {
    package var tokens: TokenShard
    package var topic: String
    package var partition: Int32
    package var offset: Int64
    /// Before this its pushes wait; nil where the event had no delay.
    package var notBefore: WallTime?

    package init(
        tokens: TokenShard, topic: String, partition: Int32, offset: Int64, notBefore: WallTime?
    ) {
        self.tokens = tokens
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.notBefore = notBefore
    }
}

/// One of `count` parts of all tokens, the same for every worker.
package struct TokenShard: Hashable, Sendable {
    package var index: UInt16
    /// At least 1, and over `index`.
    package var count: UInt16

    package init(index: UInt16, count: UInt16) {
        self.index = index
        self.count = count
    }

    package func contains(_ token: UnsafeRawBufferPointer) -> Bool {
        let hash = StableHash.hash64(token, seed: Self.seed)
        return hash.multipliedFullWidth(by: UInt64(count)).high == UInt64(index)
    }

    /// Any number but those that seed hash tables.
    private static let seed: UInt64 = 0x5348_4152_4453
}

/// The body of a push that carries one.
package struct EventPayload: Sendable, Equatable {
    /// A JSON object with an `aps` dictionary, UTF-8.
    package var body: [UInt8]
    /// `alert` when `aps` has `alert`, `badge` or `sound`, otherwise `background`.
    package var type: PushType

    package init(body: [UInt8], type: PushType) {
        self.body = body
        self.type = type
    }
}

/// Why a record cannot be read: the reason that its dead letter carries.
package struct UnreadableRecord: Error, Sendable, Equatable {
    /// A bounded word, fit for a metric label, such as `invalidJSON`.
    package var code: String
    /// What, where, and what to do about it; never the record's content.
    package var message: String

    package init(code: String, message: String) {
        self.code = code
        self.message = message
    }
}
