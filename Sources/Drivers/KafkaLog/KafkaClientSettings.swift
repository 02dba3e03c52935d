// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Logging
package import PushModel
internal import Rdkafka

/// How to reach Kafka, and as whom: one map for every client the worker starts.
package struct KafkaClientSettings: Sendable {
    /// `host:port`, several separated by commas.
    package var bootstrap: String
    /// The consumer group: the fleet's name.
    package var group: String
    /// Passed on to librdkafka, those of `OIDCSettings` excepted; they go before our defaults.
    package let properties: [String: Secret]
    private let oidc: Result<OIDCSettings?, KafkaError>
    /// Shared by all clients that are made from these settings and their copies; nil where Kafka
    /// wants no token of an endpoint's.
    let tokens: TokenSource?

    package init(bootstrap: String, group: String, properties: [String: String] = [:]) {
        self.init(
            bootstrap: bootstrap, group: group, properties: properties.mapValues { Secret($0) })
    }

    package init(bootstrap: String, group: String, properties: [String: Secret]) {
        self.bootstrap = bootstrap
        self.group = group
        self.properties = properties
        oidc = Result { () throws(KafkaError) in try OIDCSettings(properties.mapValues(\.text)) }
        tokens = (try? oidc.get())?.map { TokenSource($0) }
    }

    /// Checks every property against its rule and the library, and what belongs together, without
    /// connecting to anything: the library judges some properties only when it makes a client, so one
    /// of each kind is made that knows no broker.
    package func validate() throws(KafkaError) {
        for (name, value) in plainProperties.sorted(by: { $0.key < $1.key }) {
            try PropertyRule.rule(of: name)?.check(name, value)
        }
        for role in Role.allCases { try validate(role) }
    }

    /// Checks one property alone.
    package static func validate(property: String, value: String) throws(KafkaError) {
        let settings = KafkaClientSettings(
            bootstrap: "", group: "", properties: [property: value])
        try PropertyRule.rule(of: property)?.check(property, value)
        try settings.refuseUnsafeProperties(libraryVersion: RdkafkaVersion.number)
        if let ours = OIDCSettings.Property(rawValue: property) { return try ours.check(value) }
        try settings.set([property: value], in: Configuration())
    }

    /// Every name that may stand there, refused ones included.
    package static var knownProperties: [String] {
        Array(Set(Configuration.names + OIDCSettings.Property.allCases.map(\.rawValue))).sorted()
    }

    /// Properties that may not be set to everything that librdkafka takes: what may be written, nil
    /// for nothing, and why.
    package static var restrictedProperties: [(property: String, notation: String?, reason: String)]
    { PropertyRule.reference }

    private func validate(_ role: Role) throws(KafkaError) {
        var trial = try merged(for: role)
        // Of the member of a group alone: the other clients have no heartbeat.
        if role == .events { try Self.refuseSlowHeartbeats(trial) }
        trial["bootstrap.servers"] = nil
        // A consumer that belongs to a group would look for its coordinator.
        trial["group.id"] = nil
        // A library that renews Kerberos tickets begins with it at once.
        trial["sasl.kerberos.min.time.before.relogin"] = "0"
        let configuration = Configuration()
        try set(trial, in: configuration)
        let noToken: Client.TokenRefresh = { _ in }
        do throws(RdkafkaError) {
            _ = try Client(
                role.kind, configuration: configuration,
                tokens: tokens == nil ? nil : noToken, log: { _, _, _ in })
        } catch {
            throw .refusedTogether(secrets.redact(error.message))
        }
    }

    private var plainProperties: [String: String] { properties.mapValues(\.text) }

    enum Role: CaseIterable {
        case events, table, producer, admin, writeProbe

        var kind: Client.Kind {
            switch self {
            case .events, .table, .admin: .consumer
            case .producer, .writeProbe: .producer
            }
        }
    }

    func configuration(for role: Role) throws(KafkaError) -> Configuration {
        let configuration = Configuration()
        try set(try merged(for: role), in: configuration)
        return configuration
    }

    private func merged(for role: Role) throws(KafkaError) -> [String: String] {
        try refuseUnsafeProperties(libraryVersion: RdkafkaVersion.number)
        _ = try oidc.get()
        let properties = try PropertyRule.underPreferredNames(
            OIDCSettings.without(plainProperties))
        var merged = role.defaults(isStatic: properties["group.instance.id"] != nil)
        merged.merge(properties) { _, theirs in theirs }
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
        return merged
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
    func client(for role: Role, logger: Logger) throws(KafkaError) -> Client {
        let configuration = try configuration(for: role)
        var refresh: Client.TokenRefresh?
        if let tokens { refresh = { recipient in try tokens.refresh(recipient) } }
        do throws(RdkafkaError) {
            return try Client(
                role.kind, configuration: configuration, tokens: refresh,
                log: LibraryLog.sink(logger, secrets: secrets))
        } catch {
            // Such as a file that cannot be read, or properties that do not go together.
            throw .refusedTogether(secrets.redact(error.message))
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

    /// What no client of the worker's may be given, whoever asks for it.
    func refuseUnsafeProperties(libraryVersion: Int) throws(KafkaError) {
        for (name, value) in plainProperties.sorted(by: { $0.key < $1.key }) {
            guard let rule = PropertyRule.rule(of: name), rule.isReserved else { continue }
            try rule.check(name, value)
        }
        let strategy = properties["partition.assignment.strategy"]?.text ?? ""
        // 2.10.0: older ones abort the process when a member without partitions closes.
        if strategy.contains("cooperative"), libraryVersion < 0x020a_0000 {
            throw .refusedProperty(
                "partition.assignment.strategy",
                reason: "cooperative-sticky needs librdkafka 2.10 or newer, and this is "
                    + "\(RdkafkaVersion.text): it can abort the process; use range")
        }
    }

    /// A member of which no heartbeat comes within its session is put out of the group, and comes
    /// back, for ever. A third leaves room for two that are lost.
    private static func refuseSlowHeartbeats(_ merged: [String: String]) throws(KafkaError) {
        let defaults = (session: 45_000, heartbeat: 3000)
        let session = merged["session.timeout.ms"].flatMap { Int($0) } ?? defaults.session
        let heartbeat = merged["heartbeat.interval.ms"].flatMap { Int($0) } ?? defaults.heartbeat
        guard heartbeat * 3 > session else { return }
        throw .refusedTogether(
            "heartbeat.interval.ms is \(heartbeat), more than a third of session.timeout.ms, which "
                + "is \(session); set it to \(session / 3) at most")
    }
}

extension KafkaClientSettings.Role {
    /// What the user may override.
    /// - Parameter isStatic: the member has a name that it keeps over restarts.
    func defaults(isStatic: Bool) -> [String: String] {
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
            // A member that dies stops its partitions until its session is over, and the whole group
            // where another joins meanwhile. 15 s: Kafka notices a dead broker after 9 s, and a
            // coordinator that is away for longer than the session costs every member its partitions.
            // A static member's restart disturbs nobody while its session lasts, so that is longer.
            values["session.timeout.ms"] = isStatic ? "45000" : "15000"
            // Members hear of a rebalance with the answer to a heartbeat, and all wait for the last.
            values["heartbeat.interval.ms"] = "1000"
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
        case .admin, .writeProbe:
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
            // To ask for a topic must not make it.
            ["allow.auto.create.topics": "false"]
        case .writeProbe:
            // No broker writes a record with these: see `RightsProbe`.
            [
                "enable.idempotence": "false", "acks": "2", "retries": "0", "linger.ms": "0",
                "message.timeout.ms": "8000",
            ]
        }
    }
}
