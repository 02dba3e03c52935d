// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// The values of a librdkafka property that the worker allows, and the reason. librdkafka accepts
/// other values, but they would stop the worker silently, lose records, or make two parts of the
/// configuration disagree, so they are refused before anything starts.
struct PropertyRule: Sendable {
    private let allowed: Allowed
    private let reason: String

    private enum Allowed: Sendable {
        case nothing
        case values([String])
        case range(ClosedRange<Int>)
        /// A range, or 0 where that means "no limit".
        case zeroOr(ClosedRange<Int>)
    }

    /// A property that nobody may set.
    static func reserved(_ reason: String) -> Self { Self(allowed: .nothing, reason: reason) }

    static func only(_ values: String..., because reason: String) -> Self {
        Self(allowed: .values(values), reason: reason)
    }

    static func within(_ range: ClosedRange<Int>, because reason: String) -> Self {
        Self(allowed: .range(range), reason: reason)
    }

    static func zeroOr(_ range: ClosedRange<Int>, because reason: String) -> Self {
        Self(allowed: .zeroOr(range), reason: reason)
    }

    /// The rule of a property under any of its names; nil if every value is allowed.
    static func rule(of property: String) -> PropertyRule? {
        if let rule = table[preferredName(of: property)] { return rule }
        // librdkafka would take the text for the address of a function, and call it.
        if property.hasSuffix("_cb") || pointers.contains(property) {
            return .reserved("it is not text but a pointer inside the program")
        }
        return nil
    }

    /// Whether the worker sets this property itself, so that no value is allowed.
    var isReserved: Bool { if case .nothing = allowed { true } else { false } }

    func check(_ property: String, _ value: String) throws(KafkaError) {
        if allows(value) { return }
        guard let notation else { throw .refusedProperty(property, reason: reason) }
        throw .invalidProperty(property, message: "must be \(notation): \(reason)")
    }

    private func allows(_ value: String) -> Bool {
        let written = value.lowercased()
        switch allowed {
        case .nothing: return false
        case .values(let values):
            return values.contains(written)
                || Self.truthValues[written].map { values.contains($0) } ?? false
        // librdkafka refuses text that is not a number.
        case .range(let range): return Int(value).map(range.contains) ?? true
        case .zeroOr(let range): return Int(value).map { $0 == 0 || range.contains($0) } ?? true
        }
    }

    /// The allowed values, for people; nil if none is.
    private var notation: String? {
        switch allowed {
        case .nothing: nil
        case .values(let values): values.joined(separator: " or ")
        case .range(let range): "from \(range.lowerBound) to \(range.upperBound)"
        case .zeroOr(let range): "0 or from \(range.lowerBound) to \(range.upperBound)"
        }
    }

    /// The notations of truth values that librdkafka accepts.
    private static let truthValues = ["t": "true", "1": "true", "f": "false", "0": "false"]

    private static let pointers: Set = [
        "opaque", "default_topic_conf", "interceptors", "msg_order_cmp", "ssl_key",
        "ssl_certificate", "ssl_ca", "ssl_engine_callback_data",
    ]

    /// The rules for the reference page, by name: the allowed values (nil for none) and the reason.
    static var reference: [(property: String, notation: String?, reason: String)] {
        table.sorted { $0.key < $1.key }.map { ($0.key, $0.value.notation, $0.value.reason) }
    }

    // MARK: Names

    /// librdkafka has two names for some properties; if both are set, the last one wins.
    private static let otherNames = [
        "metadata.broker.list": "bootstrap.servers",
        "request.required.acks": "acks",
        "auto.commit.enable": "enable.auto.commit",
        "message.send.max.retries": "retries",
        "max.in.flight": "max.in.flight.requests.per.connection",
        "max.partition.fetch.bytes": "fetch.message.max.bytes",
        "queue.buffering.max.ms": "linger.ms",
        "delivery.timeout.ms": "message.timeout.ms",
        "compression.codec": "compression.type",
        "sasl.mechanism": "sasl.mechanisms",
    ]

    /// The name of a property in the defaults and the rules.
    static func preferredName(of property: String) -> String { otherNames[property] ?? property }

    /// The properties under their preferred names, so that the user's value overrides a default
    /// whichever name it has.
    static func underPreferredNames(
        _ properties: [String: String]
    ) throws(KafkaError) -> [String: String] {
        var named: [String: String] = [:]
        for (name, value) in properties.sorted(by: { $0.key < $1.key }) {
            let preferred = preferredName(of: name)
            if preferred != name, properties[preferred] != nil {
                throw .refusedProperty(name, reason: "it is another name of \(preferred)")
            }
            named[preferred] = value
        }
        return named
    }
}
