// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// The headers of each push type that an event may leave to the configuration (`planning.wire`).
package struct WireRules: Sendable, Equatable {
    /// Of the types that are built in: those of the configuration say their headers themselves, and
    /// are not known yet while it is read.
    private var rules = PushType.builtIn.map { WireRule(of: $0) }

    package init() {}

    package subscript(type: PushType) -> WireRule {
        get {
            let index = Int(type.rawValue)
            return index < rules.count ? rules[index] : WireRule(of: type.row)
        }
        set { rules[Int(type.rawValue)] = newValue }
    }

    /// 0 leaves `apns-priority` out. APNs refuses a background push of priority 10, so an urgent
    /// event that reaches a device token beside its controls is sent there with 5.
    package func priority(_ type: PushType, asked: UInt8?) -> UInt8 {
        let priority = asked ?? priority(type)
        return type == .background ? min(priority, 5) : priority
    }

    package func priority(_ type: PushType) -> UInt8 { self[type].priority ?? 0 }

    package func expiration(_ type: PushType) -> ExpirationRule { self[type].expiration }
}

/// The values of two headers of a push type, unless the event sets them.
package struct WireRule: Sendable, Equatable {
    /// `apns-priority`; nil leaves the header out.
    package var priority: UInt8?
    package var expiration: ExpirationRule

    init(of row: PushType.Row) {
        priority = row.priority
        expiration = row.expiration
    }
}
