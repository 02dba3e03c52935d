// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// A decoded state change. Its bytes are lent by the record and its decoder until the next record.
package struct Event {
    package var app: AppID
    /// Nil means every environment of the app.
    package var environment: PushEnvironment?
    /// What `subject` names: a subject or an installation.
    package var scope = ListScope.subject
    /// The subject: 1 to 256 opaque, case-sensitive bytes; empty for a kind-wide event. Where `scope`
    /// says so, the installation instead.
    package var subject: UnsafeRawBufferPointer
    /// Of a record about several subjects, all of them; no two are the same. Lent, as the subject
    /// is: an array would cost every event its reference counts.
    package var allSubjects = UnsafeBufferPointer<UnsafeRawBufferPointer>(start: nil, count: 0)
    /// Only targets of these kinds get a push; empty means any kind.
    package var kinds: [String]
    package var classes: TokenClassSet
    /// Whether it is for every control and widget of the app, whatever its kind; then there is no
    /// subject.
    package var isAppWide = false
    /// Whether the event says only that the subject changed, and lives as long as its binding says.
    package var isPlain = false
    /// When it happened: the event's `time`, else the record's timestamp.
    package var time: WallTime
    /// When the record was written, by its timestamp; when it was read, if it has none. Of a shard,
    /// when the event was written that was split; 0 if the shard does not say.
    package var writtenAt: WallTime
    /// When the push becomes worthless.
    package var expiresAt: WallTime
    /// How long planning waits before it sends: time for the producer's own store to catch up.
    package var delay: Duration
    /// `apns-priority` 1, 5 or 10; nil takes the push type's default.
    package var priority: UInt8?
    /// The value of `apns-collapse-id`, at most 64 bytes.
    package var collapseID: String?
    /// How `apns-expiration` is filled in, `none` or `deadline`; nil takes the push type's rule.
    package var expiration: ExpirationRule?
    /// The JSON body, minified; nil for a push that says "look again".
    package var payload: EventPayload?
    /// Which part of an event with a large audience this is; nil for a whole event.
    package var shard: EventShard?
    /// The producer's name for the event, at most 256 bytes: in dead letters and in the log.
    package var id: UnsafeRawBufferPointer?
    /// The `traceparent` that came with the event, unchecked; nil where none was looked for.
    package var traceparent: UnsafeRawBufferPointer?

    package init(
        app: AppID, subject: UnsafeRawBufferPointer, time: WallTime, expiresAt: WallTime,
        kinds: [String], classes: TokenClassSet, delay: Duration, isPlain: Bool = false
    ) {
        assert(delay >= .zero, "an event's delay is at least zero")
        self.app = app
        self.subject = subject
        self.time = time
        writtenAt = time
        self.expiresAt = expiresAt
        self.kinds = kinds
        self.classes = classes
        self.delay = delay
        self.isPlain = isPlain
    }
}

extension Event {
    /// Of a record about several subjects, those after the first; none for `about(_:)`.
    package var furtherSubjects: UnsafeBufferPointer<UnsafeRawBufferPointer> {
        guard let first = allSubjects.first, first.baseAddress == subject.baseAddress else {
            return UnsafeBufferPointer(start: nil, count: 0)
        }
        return UnsafeBufferPointer(rebasing: allSubjects[1...])
    }

    /// The installation that the event is for; nil for any other event.
    package var installation: String? {
        scope == .installation ? String(decoding: subject, as: UTF8.self) : nil
    }

    package func hasSubject(_ other: UnsafeRawBufferPointer) -> Bool {
        subject.elementsEqual(other) || furtherSubjects.contains { $0.elementsEqual(other) }
    }

    /// The event of a record about several subjects, about one of the further ones.
    package func about(_ further: UnsafeRawBufferPointer) -> Event {
        var event = self
        event.subject = further
        return event
    }
}

/// The part of a large audience that an event is for, and the position of the event that was split.
package struct EventShard: Sendable, Equatable {
    package var tokens: TokenShard
    package var topic: String
    package var partition: Int32
    package var offset: Int64
    /// The event's pushes wait until then; nil where the event that was split had no delay.
    package var notBefore: WallTime?
    /// When the event that was split was written; nil in a shard of an earlier version.
    package var writtenAt: WallTime?

    package init(
        tokens: TokenShard, topic: String, partition: Int32, offset: Int64, notBefore: WallTime?,
        writtenAt: WallTime?
    ) {
        self.tokens = tokens
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.notBefore = notBefore
        self.writtenAt = writtenAt
    }
}

/// One of `count` parts of all tokens. The parts are the same on every worker.
package struct TokenShard: Hashable, Sendable {
    package var index: UInt16
    /// The number of parts: at least 1, and greater than `index`.
    package var count: UInt16

    package init(index: UInt16, count: UInt16) {
        precondition(index < count, "a shard's index lies below the count of shards")
        self.index = index
        self.count = count
    }

    package func contains(_ token: UnsafeRawBufferPointer) -> Bool {
        Self.index(of: token, count: count) == index
    }

    /// Which of so many parts of all tokens this one is in. Parts are in the order of a hash, so that a
    /// part of `n` is cut into parts of `n · m` that follow each other.
    package static func index(of token: UnsafeRawBufferPointer, count: UInt16) -> UInt16 {
        let hash = StableHash.hash64(token, seed: seed)
        return UInt16(hash.multipliedFullWidth(by: UInt64(count)).high)
    }

    /// Arbitrary, but different from the seeds of hash tables.
    private static let seed: UInt64 = 0x5348_4152_4453
}

/// The body of a push that carries one.
package struct EventPayload: Sendable, Equatable {
    /// A JSON object, UTF-8.
    package var body: [UInt8]
    package var type: PushType
    /// What the payload of a Live Activity does; nil for every other type.
    package var activity: ActivityChange?

    package init(body: [UInt8], type: PushType, activity: ActivityChange? = nil) {
        assert(!body.isEmpty, "a payload has at least one byte")
        assert(
            activity == nil || type == .liveActivity,
            "only a push for a Live Activity changes an activity")
        self.body = body
        self.type = type
        self.activity = activity
    }

    /// Whether it says no more than that something changed, so that one is as good as many.
    package var isEmpty: Bool { type.row.emptyBody.map { body.elementsEqual($0.utf8) } ?? false }
}

/// What a push does to a Live Activity.
package struct ActivityChange: Sendable, Equatable {
    package enum Event: String, CaseIterable, Sendable {
        case start, update, end
    }

    package var event: Event
    /// `timestamp` of the payload, in seconds since 1970: of two changes the later one counts.
    package var timestamp: Int64

    package init(event: Event, timestamp: Int64) {
        self.event = event
        self.timestamp = timestamp
    }
}

/// Why a record cannot be read: the reason that its dead letter carries.
package struct UnreadableRecord: Error, Sendable, Equatable {
    /// A bounded word, fit for a metric label, such as `invalidJSON`.
    package var code: String
    /// What, where, and what to do about it; never the record's content but, of an event, its app's name.
    package var message: String

    package init(code: String, message: String) {
        self.code = code
        self.message = message
    }

    /// Thrown for a record that its binding leaves out, and for a `ProbeRecord`: it can be read, and is
    /// no event. An optional event would cost each event several copies, 460 of 4,250 instructions per
    /// push.
    package static let leftOut = UnreadableRecord(code: "filtered", message: "")

    package var isLeftOut: Bool { code == Self.leftOut.code }
}
