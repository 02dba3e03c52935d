// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// A snapshot of what one handler of one installation shows, decoded into flat, reusable buffers:
/// a replay reads millions of them.
package struct Registration {
    /// A range of `bytes`.
    package struct Slice: Sendable, BitwiseCopyable {
        package var offset: UInt32
        package var count: UInt32

        package static let empty = Slice(offset: 0, count: 0)

        package init(offset: UInt32, count: UInt32) {
            self.offset = offset
            self.count = count
        }
    }

    /// One subject that one target shows; or, with an empty subject, a target that shows none.
    package struct Row: Sendable, BitwiseCopyable {
        package var tokenClass: TokenClass
        /// Whether a plain event sends this target a push. Always true for controls and widgets; a
        /// device must have asked for a background push. Of a Live Activity, to which plain events
        /// send nothing: whether this is its push-to-start token.
        package var hearsChanges: Bool
        /// The device token as bytes, not hexadecimal.
        package var token: Slice
        package var kind: Slice
        package var subject: Slice

        package init(
            tokenClass: TokenClass, hearsChanges: Bool, token: Slice, kind: Slice, subject: Slice
        ) {
            self.tokenClass = tokenClass
            self.hearsChanges = hearsChanges
            self.token = token
            self.kind = kind
            self.subject = subject
        }
    }

    package var environment = PushEnvironment.production
    package var app = AppID(rawValue: 0)
    /// The Kafka key, `environment/app/installation/handler`, normalised: `sandbox` reads
    /// `development`.
    package var key: [UInt8] = []
    /// The record's `registeredAt`, else its Kafka timestamp.
    package var registeredAt = WallTime(milliseconds: 0)
    /// Targets without a token are left out.
    package var rows: [Row] = []
    package var bytes: [UInt8] = []

    package init() {}

    /// Removes the content and keeps the memory.
    package mutating func clear() {
        key.removeAll(keepingCapacity: true)
        rows.removeAll(keepingCapacity: true)
        bytes.removeAll(keepingCapacity: true)
    }

    /// The installation in a key: what is between its last two slashes; nil if there is nothing.
    package static func installation(
        in key: UnsafeRawBufferPointer
    ) -> UnsafeRawBufferPointer? {
        let slash = UInt8(ascii: "/")
        guard let end = key.lastIndex(of: slash), let start = key[..<end].lastIndex(of: slash),
            end - start > 1
        else { return nil }
        return UnsafeRawBufferPointer(rebasing: key[(start + 1)..<end])
    }

    package mutating func append(_ source: UnsafeRawBufferPointer) -> Slice {
        let slice = Slice(offset: UInt32(bytes.count), count: UInt32(source.count))
        bytes.append(contentsOf: source)
        assert(
            bytes.count == Int(slice.offset) + Int(slice.count),
            "the bytes end where the slice ends")
        return slice
    }
}

/// Says that a device token is dead, and why: the value of a record of the suppressions topic.
package struct Suppression: Sendable, Equatable {
    package var status: UInt16
    package var reason: String
    /// The `timestamp` of a 410 answer.
    package var apnsTimestamp: WallTime?
    /// When the registration that the push was sent under was registered. Registrations that are
    /// not later than that are suppressed.
    package var registeredAt: WallTime

    package init(
        status: UInt16, reason: String, apnsTimestamp: WallTime?, registeredAt: WallTime
    ) {
        self.status = status
        self.reason = reason
        self.apnsTimestamp = apnsTimestamp
        self.registeredAt = registeredAt
    }
}
