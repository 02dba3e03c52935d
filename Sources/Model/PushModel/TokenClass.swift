// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// What kind of thing on the device owns a token; the word a registration uses. Each class but
/// `device` has one push type, and each has a suffix of topics of its own.
@usableFromInline
package struct TokenClass: Hashable, Sendable, BitwiseCopyable {
    /// Position in `names`.
    @usableFromInline package let rawValue: UInt8

    // Written by hand for the reason given at `PushType`.
    @inlinable
    package static func == (left: TokenClass, right: TokenClass) -> Bool {
        left.rawValue == right.rawValue
    }

    private init(row: UInt8) { rawValue = row }

    package static let control = TokenClass(row: 0)
    package static let widget = TokenClass(row: 1)
    package static let device = TokenClass(row: 2)
    package static let liveActivity = TokenClass(row: 3)
    package static let complication = TokenClass(row: 4)
    package static let voip = TokenClass(row: 5)
    package static let fileProvider = TokenClass(row: 6)
    package static let location = TokenClass(row: 7)
    package static let pushToTalk = TokenClass(row: 8)
    /// A broadcast channel of Live Activities: its token is the channel's ID, and one push to it is
    /// for every activity that subscribes to the channel.
    package static let channel = TokenClass(row: 9)

    /// The classes of Apple's push types as of this release.
    package static let builtIn = ownNames.indices.map { TokenClass(row: UInt8($0)) }

    /// All classes: those that are built in, then those of the configured push types.
    package static let allCases = names.indices.map { TokenClass(row: UInt8($0)) }

    /// Those of this release; reading it leaves the table of all classes open.
    package static let ownNames = [
        "control", "widget", "device", "liveActivity", "complication", "voip", "fileProvider",
        "location", "pushToTalk", "channel",
    ]
    private static let names = ownNames + ConfiguredPushTypes.all.map(\.tokenClass)

    package var name: String { Self.names[Int(rawValue)] }

    package init?(name: String) {
        guard let row = Self.names.firstIndex(of: name) else { return nil }
        self.init(row: UInt8(row))
    }

    /// The type of the push without a payload that a change sends to such a token; nil where there
    /// is none. A device or location token gets one only if its registration says so in `onChange`.
    package var changeType: PushType? { Self.changeTypes[Int(rawValue)] }

    /// Whether a change is pushed only to tokens whose registration says `onChange`: a background
    /// push wakes the app, and a location query asks where the phone is.
    package var hearsChangesOnDemand: Bool { self == .device || self == .location }

    private static let changeTypes: [PushType?] = allCases.map { tokenClass in
        PushType.allTypes.first { $0.tokenClass == tokenClass && $0.row.emptyBody != nil }
    }

    /// The type of a push with this payload to such a token. Only device tokens are sent two types,
    /// which the payload tells apart.
    /// - Parameter interrupts: whether `aps` has `alert`, `badge` or `sound`.
    package func payloadType(interrupts: Bool) -> PushType {
        self == .device ? (interrupts ? .alert : .background) : Self.types[Int(rawValue)]
    }

    private static let types: [PushType] = allCases.map { tokenClass in
        PushType.allTypes.first { $0.classes.contains(tokenClass) }!
    }

    /// Appended to the bundle identifier to make `apns-topic`. A broadcast has no such header: the
    /// suffix of channels occurs in records, metrics and logs alone.
    package var topicSuffix: String {
        self == .channel ? Self.channelSuffix : Self.types[Int(rawValue)].row.topicSuffix
    }

    package static let channelSuffix = ".push-type.liveactivity.channel"
}

/// A set of token classes, as an event's `classes` filter names them.
package struct TokenClassSet: OptionSet, Hashable, Sendable {
    package let rawValue: UInt16

    package init(rawValue: UInt16) { self.rawValue = rawValue }
    package init(_ tokenClass: TokenClass) { rawValue = 1 << UInt16(tokenClass.rawValue) }

    package static let all = TokenClassSet(
        rawValue: TokenClass.allCases.reduce(0) { $0 | 1 << UInt16($1.rawValue) })

    package func contains(_ tokenClass: TokenClass) -> Bool {
        rawValue & (1 << UInt16(tokenClass.rawValue)) != 0
    }
}
