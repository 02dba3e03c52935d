// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Rdkafka

/// How the members of a group come to their partitions. Each way needs a librdkafka that bears it.
package enum GroupProtocol: Hashable, Sendable, CaseIterable {
    /// Every rebalance takes all partitions from all members: `range`, the default, and `roundrobin`.
    case eager
    /// A rebalance takes only what another member gets: `cooperative-sticky`.
    case cooperative
    /// As `cooperative`, but the brokers decide who gets what (KIP-848): `group.protocol=consumer`.
    case consumer

    static let property = "group.protocol"
    static let remoteAssignor = "group.remote.assignor"
    static let strategy = "partition.assignment.strategy"

    /// The protocol that the user's properties ask for.
    init(_ properties: [String: String]) {
        // librdkafka compares without regard to case.
        if properties[Self.property]?.lowercased() == "consumer" {
            self = .consumer
        } else if properties[Self.strategy]?.contains("cooperative") == true {
            self = .cooperative
        } else {
            self = .eager
        }
    }

    /// The first librdkafka with which it is allowed, as in `RdkafkaVersion.number`.
    ///
    /// Before 2.10.0 the library aborts the process when a member of a cooperative group that has no
    /// partitions is closed. Its authors call `consumer` fit for production from 2.12.0 on.
    var minimumVersion: Int {
        switch self {
        case .eager: 0
        case .cooperative: 0x020a_0000
        case .consumer: 0x020c_0000
        }
    }

    func isAllowed(libraryVersion: Int) -> Bool { libraryVersion >= minimumVersion }

    /// Whether librdkafka has `group.protocol` at all (since 2.4). What it takes without the property
    /// is to change with a later version.
    static let isInLibrary = RdkafkaVersion.number >= 0x0204_0000

    /// What the brokers decide for a group of this protocol, with their own property for it.
    private var decidedByBrokers: [(property: String, remedy: String)] {
        guard self == .consumer else { return [] }
        return [
            ("session.timeout.ms", "group.consumer.session.timeout.ms of the brokers is in force"),
            (
                "heartbeat.interval.ms",
                "group.consumer.heartbeat.interval.ms of the brokers is in force"
            ),
            (Self.strategy, "set \(Self.remoteAssignor), or leave the choice to the brokers"),
        ]
    }

    /// The properties that may not be set with this protocol.
    var refusedProperties: [String] { decidedByBrokers.map(\.property) }

    /// Throws if the library does not bear the protocol, or a property does not go with it.
    static func check(_ properties: [String: String], libraryVersion: Int) throws(KafkaError) {
        let wanted = GroupProtocol(properties)
        guard wanted.isAllowed(libraryVersion: libraryVersion) else {
            throw wanted.refusal
        }
        for (property, remedy) in wanted.decidedByBrokers where properties[property] != nil {
            throw .refusedProperty(
                property, reason: "it does not go with group.protocol=consumer: \(remedy)")
        }
    }

    private var refusal: KafkaError {
        let library =
            "librdkafka \(Self.text(minimumVersion)) or newer, and this is "
            + RdkafkaVersion.text
        return switch self {
        case .eager:
            preconditionFailure("every librdkafka has eager groups, so they are never refused")
        case .cooperative:
            .refusedProperty(
                Self.strategy,
                reason: "cooperative-sticky needs \(library): it can abort the process; use range")
        case .consumer:
            .refusedProperty(
                Self.property, reason: "consumer needs \(library); leave it out")
        }
    }

    /// Major and minor, as people write them.
    private static func text(_ version: Int) -> String {
        "\(version >> 24).\(version >> 16 & 0xff)"
    }

    // MARK: What `lamplighter check` says

    /// One line on what the loaded library and this Kafka bear, for people.
    ///
    /// - Parameter isInKafka: what `kafkaHasConsumerProtocol` has found.
    package static func summary(isInKafka: Bool?) -> String {
        summary(library: RdkafkaVersion.text, RdkafkaVersion.number, isInKafka: isInKafka)
    }

    static func summary(library: String, _ version: Int, isInKafka: Bool?) -> String {
        let parts = allCases.map { kind in
            if !kind.isAllowed(libraryVersion: version) {
                "\(kind.name) needs \(text(kind.minimumVersion))"
            } else if kind == .consumer, let isInKafka {
                isInKafka ? "\(kind.name)" : "no \(kind.name), which needs Kafka 4.0"
            } else {
                kind.name
            }
        }
        return "librdkafka \(library): \(parts.joined(separator: ", "))"
    }

    private var name: String {
        switch self {
        case .eager: "range and roundrobin"
        case .cooperative: "cooperative-sticky"
        case .consumer: "group.protocol=consumer"
        }
    }
}
