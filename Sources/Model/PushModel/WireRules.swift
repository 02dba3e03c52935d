// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// The headers of each push type that an event may leave to the configuration (`planning.wire`).
@usableFromInline
package struct WireRules: Sendable, Equatable {
    /// Of the types that are built in: those of the configuration say their headers themselves, and
    /// are not known yet while it is read.
    @usableFromInline var rules = PushType.builtIn.map { WireRule(of: $0) }

    package init() {}

    // Inlined where the pushes of an event are made: a call would retain the array for each push.
    @inlinable
    package subscript(type: PushType) -> WireRule {
        get {
            let index = Int(type.rawValue)
            return index < rules.count ? rules[index] : Self.ownRule(of: type)
        }
        set { rules[Int(type.rawValue)] = newValue }
    }

    @usableFromInline
    static func ownRule(of type: PushType) -> WireRule { WireRule(of: type.row) }

    /// 0 leaves `apns-priority` out. APNs refuses a background push of priority 10, so an urgent
    /// event that reaches a device token beside its controls is sent there with 5.
    @inlinable
    package func priority(_ type: PushType, asked: UInt8?) -> UInt8 {
        let priority = asked ?? priority(type)
        return type == .background ? min(priority, 5) : priority
    }

    @inlinable
    package func priority(_ type: PushType) -> UInt8 { self[type].priority ?? 0 }

    @inlinable
    package func expiration(_ type: PushType) -> ExpirationRule { self[type].expiration }
}

/// The values of two headers of a push type, unless the event sets them.
@usableFromInline
package struct WireRule: Sendable, Equatable {
    /// `apns-priority`; nil leaves the header out.
    @usableFromInline package var priority: UInt8?
    @usableFromInline package var expiration: ExpirationRule

    init(of row: PushType.Row) {
        priority = row.priority
        expiration = row.expiration
    }
}
