// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// What the worker can live with of a librdkafka property, and what would happen otherwise. A value
/// outside of its rule is accepted by the library and stops the worker without a word, loses records
/// or makes two parts of the configuration disagree; so it is refused before anything starts.
struct PropertyRule: Sendable {
    private let allowed: Allowed
    private let reason: String

    private enum Allowed: Sendable {
        case nothing
        case values([String])
        case range(ClosedRange<Int>)
        /// Where 0 means "without end".
        case zeroOr(ClosedRange<Int>)
    }

    /// Nobody may set it.
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

    /// The rule of a property under any of its names; nil when every value will do.
    static func rule(of property: String) -> PropertyRule? {
        if let rule = table[preferredName(of: property)] { return rule }
        // The library would take the text for the address of a function, and call it.
        if property.hasSuffix("_cb") || pointers.contains(property) {
            return .reserved("it is no text but a part of the program")
        }
        return nil
    }

    /// A setting of the worker's own, whatever its value.
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
        // What is no number at all is for the library to refuse.
        case .range(let range): return Int(value).map(range.contains) ?? true
        case .zeroOr(let range): return Int(value).map { $0 == 0 || range.contains($0) } ?? true
        }
    }

    /// What may be written; nil when nothing may.
    private var notation: String? {
        switch allowed {
        case .nothing: nil
        case .values(let values): values.joined(separator: " or ")
        case .range(let range): "from \(range.lowerBound) to \(range.upperBound)"
        case .zeroOr(let range): "0 or from \(range.lowerBound) to \(range.upperBound)"
        }
    }

    /// As the library reads them.
    private static let truthValues = ["t": "true", "1": "true", "f": "false", "0": "false"]

    private static let pointers: Set = [
        "opaque", "default_topic_conf", "interceptors", "msg_order_cmp", "ssl_key",
        "ssl_certificate", "ssl_ca", "ssl_engine_callback_data",
    ]

    /// For the reference page: name, what may be written (nil for nothing) and why, by name.
    static var reference: [(property: String, notation: String?, reason: String)] {
        table.sorted { $0.key < $1.key }.map { ($0.key, $0.value.notation, $0.value.reason) }
    }

    // MARK: Names

    /// The library has two names for some properties, and of both the one that is set last counts.
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

    /// The one that the defaults and the rules are under.
    static func preferredName(of property: String) -> String { otherNames[property] ?? property }

    /// The properties under their preferred names, so that the user's goes before a default of ours
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
