// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// A push type: an index into the table `all`, which holds everything about a type that is data. A
/// new push type of Apple's needs a row there, or in the configuration, and nothing else.
@usableFromInline
package struct PushType: Hashable, Sendable, BitwiseCopyable {
    /// Position in `all`; small enough to travel in every push.
    @usableFromInline package let rawValue: UInt8

    // Written by hand because the derived operator is called through its witness table. Together
    // with that of `BodyID` it cost 140 of 3,572 instructions per push.
    @inlinable
    package static func == (left: PushType, right: PushType) -> Bool {
        left.rawValue == right.rawValue
    }

    package init(rawValue: UInt8) {
        precondition(
            Int(rawValue) < Self.all.count,
            "a push type's number lies within the table of types: \(rawValue)")
        self.rawValue = rawValue
    }

    /// Names a row that is known to exist, without initialising the table.
    private init(row: UInt8) { rawValue = row }

    package static let controls = PushType(row: 0)
    package static let widgets = PushType(row: 1)
    @usableFromInline package static let background = PushType(row: 2)
    package static let alert = PushType(row: 3)
    package static let liveActivity = PushType(row: 4)

    /// Apple's list, complete as of its 2025/26 page ("Sending notification requests to APNs").
    /// Sizes: 5120 bytes for VoIP, 4096 for every other. `mdm` is left out: its topic is not a
    /// bundle identifier and it needs a client certificate.
    package static let builtIn: [Row] = [
        Row("controls", .control, suffix: ".push-type.controls", body: contentChanged),
        Row(
            "widgets", .widget, suffix: ".push-type.widgets", urgency: .glance,
            body: contentChanged),
        Row(
            "background", .device, priority: 5, expiration: .deadline,
            body: #"{"aps":{"content-available":1}}"#),
        Row("alert", .device, expiration: .deadline),
        Row("liveactivity", .liveActivity, suffix: ".push-type.liveactivity"),
        Row("complication", .complication, suffix: ".complication", urgency: .glance),
        Row("voip", .voip, suffix: ".voip", bodyBytesMax: 5120),
        Row("fileprovider", .fileProvider, suffix: ".pushkit.fileprovider", priority: 5),
        Row("location", .location, suffix: ".location-query", body: #"{"aps":{}}"#),
        Row("pushtotalk", .pushToTalk, suffix: ".voip-ptt"),
    ]

    package static let ownNames = builtIn.map(\.name)
    package static let ownTopicSuffixes = builtIn.map(\.topicSuffix)

    /// Those that are built in, then those of the configuration.
    package static let all: [Row] =
        builtIn
        + ConfiguredPushTypes.all.map { type in
            Row(
                type.name, TokenClass(name: type.tokenClass)!, suffix: type.topicSuffix,
                priority: type.priority, expiration: type.expiration,
                bodyBytesMax: type.bodyBytesMax, body: type.changeBody)
        }

    package static var allTypes: [PushType] {
        all.indices.map { PushType(rawValue: UInt8($0)) }
    }

    package static var builtInTypes: [PushType] {
        builtIn.indices.map { PushType(row: UInt8($0)) }
    }

    package init?(name: String) {
        guard let index = Self.all.firstIndex(where: { $0.name == name }) else { return nil }
        rawValue = UInt8(index)
    }

    package var row: Row { Self.all[Int(rawValue)] }
    package var name: String { row.name }
    package var tokenClass: TokenClass { row.tokenClass }

    /// The largest payload that an event may bring, in bytes: of a Live Activity that of a broadcast,
    /// which is more than a token's.
    package var payloadBytesMax: Int { self == .liveActivity ? 5120 : row.bodyBytesMax }

    /// The classes of token that it is sent to: `tokenClass`, and of a Live Activity channels too.
    package var classes: TokenClassSet {
        self == .liveActivity
            ? [TokenClassSet(.liveActivity), TokenClassSet(.channel)] : TokenClassSet(tokenClass)
    }

    private static let contentChanged = #"{"aps":{"content-changed":true}}"#

    /// What APNs demands of pushes of one type.
    package struct Row: Sendable {
        /// The value of `apns-push-type`.
        package let name: String
        /// The class of token it is sent to.
        package let tokenClass: TokenClass
        /// Appended to the bundle identifier to make `apns-topic`.
        package let topicSuffix: String
        /// Default `apns-priority`: 10, 5 or 1.
        package let priority: UInt8
        package let urgency: Urgency
        package let expiration: ExpirationRule
        /// The largest body APNs accepts, in bytes.
        package let bodyBytesMax: Int
        /// The body of a push without a payload; nil when the type cannot be sent without one.
        package let emptyBody: String?

        init(
            _ name: String, _ tokenClass: TokenClass, suffix: String = "", priority: UInt8 = 10,
            urgency: Urgency? = nil, expiration: ExpirationRule = .immediate,
            bodyBytesMax: Int = 4096, body emptyBody: String? = nil
        ) {
            precondition(
                [1, 5, 10].contains(priority), "a priority is 1, 5 or 10, as APNs knows them")
            precondition(
                (emptyBody?.utf8.count ?? 0) <= bodyBytesMax,
                "a type's own body is no longer than APNs accepts")
            self.name = name
            self.tokenClass = tokenClass
            self.topicSuffix = suffix
            self.priority = priority
            self.urgency = urgency ?? Urgency(priority: priority)
            self.expiration = expiration
            self.bodyBytesMax = bodyBytesMax
            self.emptyBody = emptyBody
        }

        /// Whether an event may bring a payload for it. Controls and widgets are only told to look
        /// again.
        package var carriesPayload: Bool { tokenClass != .control && tokenClass != .widget }
    }
}

/// How `apns-expiration` is filled in.
@usableFromInline
package enum ExpirationRule: UInt8, Sendable, BitwiseCopyable {
    /// The header is left out: Apple stores the push for up to 30 days.
    case none
    /// `0`: one attempt, never stored.
    case immediate
    /// Now plus the smaller of the push's remaining life and an hour.
    case deadline

    /// The value of `apns-expiration` under `deadline`, in Unix seconds. An hour at most: a "look
    /// again" that is older says nothing.
    package static func deadlineSeconds(until expiresAt: WallTime, now: WallTime) -> Int64 {
        min(expiresAt.seconds, now.seconds + 3600)
    }
}
