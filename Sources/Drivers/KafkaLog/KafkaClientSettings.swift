// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Logging
internal import Rdkafka

/// How to reach Kafka, and as whom: one map for every client the worker starts.
package struct KafkaClientSettings: Sendable {
    /// `host:port`, several separated by commas.
    package var bootstrap: String
    /// The consumer group: the fleet's name.
    package var group: String
    /// Passed on to librdkafka, those of `OIDCSettings` excepted; they go before our defaults.
    package let properties: [String: String]
    private let oidc: Result<OIDCSettings?, KafkaError>
    /// Shared by all clients that are made from these settings and their copies; nil where Kafka
    /// wants no token of an endpoint's.
    let tokens: TokenSource?

    package init(bootstrap: String, group: String, properties: [String: String] = [:]) {
        self.bootstrap = bootstrap
        self.group = group
        self.properties = properties
        oidc = Result { () throws(KafkaError) in try OIDCSettings(properties) }
        tokens = (try? oidc.get())?.map { TokenSource($0) }
    }

    /// Checks every property against the library, and what belongs together, without connecting to
    /// anything.
    package func validate() throws(KafkaError) {
        for role in Role.allCases { _ = try configuration(for: role) }
    }

    /// Checks one property alone.
    package static func validate(property: String, value: String) throws(KafkaError) {
        let settings = KafkaClientSettings(
            bootstrap: "", group: "", properties: [property: value])
        try settings.refuseUnsafeProperties(libraryVersion: RdkafkaVersion.number)
        if let ours = OIDCSettings.Property(rawValue: property) { return try ours.check(value) }
        try settings.set(settings.properties, in: Configuration())
    }

    enum Role: CaseIterable { case events, table, producer, admin }

    func configuration(for role: Role) throws(KafkaError) -> Configuration {
        try refuseUnsafeProperties(libraryVersion: RdkafkaVersion.number)
        _ = try oidc.get()
        let configuration = Configuration()
        var merged = role.defaults
        merged.merge(OIDCSettings.without(properties)) { _, theirs in theirs }
        merged.merge(role.invariants) { _, ours in ours }
        // The library refuses a fetch that is smaller than a message may be.
        if properties["fetch.max.bytes"] == nil,
            let fetch = merged["fetch.max.bytes"].flatMap({ Int($0) }),
            let message = properties["message.max.bytes"].flatMap({ Int($0) })
        {
            merged["fetch.max.bytes"] = "\(max(fetch, message))"
        }
        merged["bootstrap.servers"] = bootstrap
        if role == .events || role == .table { merged["group.id"] = group }
        try set(merged, in: configuration)
        return configuration
    }

    private func set(
        _ properties: [String: String], in configuration: borrowing Configuration
    ) throws(KafkaError) {
        // Sorted, so that of several mistakes always the same one is reported.
        for (name, value) in properties.sorted(by: { $0.key < $1.key }) {
            do throws(ConfigurationError) {
                try configuration.set(name, value)
            } catch {
                throw translated(error)
            }
        }
    }

    /// A client that gets its tokens from `tokens`, where it needs any.
    func client(_ kind: Client.Kind, for role: Role, logger: Logger) throws(KafkaError) -> Client {
        let configuration = try configuration(for: role)
        var refresh: Client.TokenRefresh?
        if let tokens { refresh = { recipient in try tokens.refresh(recipient) } }
        do throws(RdkafkaError) {
            return try Client(
                kind, configuration: configuration, tokens: refresh,
                log: LibraryLog.sink(logger, secrets: secrets))
        } catch {
            throw .client(error)
        }
    }

    private func translated(_ error: ConfigurationError) -> KafkaError {
        switch error {
        case .unknownProperty(let name):
            .unknownProperty(name)
        case .invalidValue(let property, let message):
            .invalidProperty(property, message: secrets.redact(message))
        }
    }

    var secrets: SecretFilter { SecretFilter(properties: properties) }

    /// The properties whose other values would lose records, or make two parts of the
    /// configuration disagree.
    func refuseUnsafeProperties(libraryVersion: Int) throws(KafkaError) {
        for (name, reason) in Self.reserved where properties[name] != nil {
            throw .refusedProperty(name, reason: reason)
        }
        if properties["auto.commit.interval.ms"] == "0" {
            throw .refusedProperty(
                "auto.commit.interval.ms", reason: "0 would commit only when the worker stops")
        }
        let strategy = properties["partition.assignment.strategy"] ?? ""
        // 2.10.0: older ones abort the process when a member without partitions closes.
        if strategy.contains("cooperative"), libraryVersion < 0x020a_0000 {
            throw .refusedProperty(
                "partition.assignment.strategy",
                reason: "cooperative-sticky needs librdkafka 2.10 or newer, and this is "
                    + "\(RdkafkaVersion.text): it can abort the process; use range")
        }
    }

    private static let reserved: KeyValuePairs<String, String> = [
        "enable.auto.commit": "offsets are committed only through the ledger",
        "auto.commit.enable": "offsets are committed only through the ledger",
        "enable.auto.offset.store": "an offset is stored only when its pushes have ended",
        "auto.offset.reset": "set kafka.startFrom instead",
        "enable.partition.eof": "the worker needs it to know when it has caught up",
        "bootstrap.servers": "set kafka.bootstrap instead",
        "metadata.broker.list": "set kafka.bootstrap instead",
        "group.id": "set kafka.group instead",
        "enable.idempotence": "without it a broker restart duplicates and reorders records",
        "acks": "an event is released only when all in-sync replicas have its records",
        "request.required.acks": "an event is released only when all in-sync replicas have it",
        "transactional.id": "records are produced outside transactions",
    ]
}

extension KafkaClientSettings.Role {
    /// What the user may override.
    var defaults: [String: String] {
        var values = [
            "client.id": "lamplighter",
            "socket.keepalive.enable": "true",
            // Nagle is on by default until 2.10.
            "socket.nagle.disable": "true",
            // An unreachable broker holds up coordinator queries for this long (librdkafka 4970).
            "socket.timeout.ms": "30000",
            "reconnect.backoff.max.ms": "5000",
        ]
        switch self {
        case .events:
            // 200 ms: a burst read just before a crash is sent again; five times less than the
            // default kept duplicates per crash down to what 200 ms hold.
            values["auto.commit.interval.ms"] = "200"
            values["partition.assignment.strategy"] = "range"
            values["fetch.wait.max.ms"] = "100"
            values["queued.max.messages.kbytes"] = "65536"
        case .table:
            // The end of a partition is noticed within one empty fetch.
            values["fetch.wait.max.ms"] = "50"
            // Every record in the queue takes 0.4 KiB more, and all of it is needed at once with
            // the index: with 256 MiB a replay of a million registrations took 400 MiB more, and
            // not less time.
            values["queued.max.messages.kbytes"] = "32768"
            // One answer is decompressed as a whole, however full the queue is; 50 MB become 200.
            values["fetch.max.bytes"] = "4194304"
        case .producer:
            values["compression.type"] = "lz4"
            values["linger.ms"] = "5"
            // Java's partitioner, so that our records stand beside those of other producers.
            values["partitioner"] = "murmur2_random"
            values["message.timeout.ms"] = "300000"
            values["queue.buffering.max.messages"] = "100000"
            values["queue.buffering.max.kbytes"] = "65536"
        case .admin:
            break
        }
        if self == .events || self == .table, FetchPrompter.isInLibrary {
            let milliseconds = Int(FetchPrompter.backoff / .milliseconds(1))
            values["fetch.queue.backoff.ms"] = "\(milliseconds)"
        }
        return values
    }

    /// What nobody may override.
    var invariants: [String: String] {
        switch self {
        case .events:
            [
                "enable.auto.commit": "true", "enable.auto.offset.store": "false",
                // Start positions are chosen here; a position that left the log is an error to
                // count, not one to skip over.
                "auto.offset.reset": "error", "enable.partition.eof": "true",
                "allow.auto.create.topics": "false",
            ]
        case .table:
            [
                "enable.auto.commit": "false", "enable.auto.offset.store": "false",
                "auto.offset.reset": "error", "enable.partition.eof": "true",
                "allow.auto.create.topics": "false",
            ]
        case .producer:
            ["enable.idempotence": "true", "acks": "all"]
        case .admin:
            [:]
        }
    }
}
