// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Logging
package import PushModel
internal import Rdkafka

/// How to reach Kafka and as which user: the settings of every client that the worker starts.
package struct KafkaClientSettings: Sendable {
    /// The bootstrap servers: `host:port`, separated by commas.
    package var bootstrap: String
    /// The consumer group: the fleet's name.
    package var group: String
    /// The user's properties. They override the defaults and are passed to librdkafka, except for
    /// those of `OIDCSettings`.
    package let properties: [String: Secret]
    private let oidc: Result<OIDCSettings?, KafkaError>
    /// The source of bearer tokens, shared by all clients made from these settings and their
    /// copies; nil if no token endpoint is configured.
    let tokens: TokenSource?
    /// Whether a record that is not written within two thirds of the group's session is given up, whatever
    /// `message.timeout.ms` is: a member that has lost its partitions without knowing it has nothing left to
    /// write then by the time others have them. And whether a member that is not let into its group asks again
    /// after half a minute, or a session if that is longer, unless `max.poll.interval.ms` is set.
    package var boundsWaitsBySession = false
    /// Whether the clients' queues take little memory, for commands that read and write whole topics
    /// and need not be the fastest.
    package var isFrugal = false

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

    /// Checks every property against its rule and librdkafka, and whether they fit together,
    /// without connecting to anything. librdkafka checks some properties only when it makes a
    /// client, so one of each kind is made without a broker.
    package func validate() throws(KafkaError) {
        for (name, value) in plainProperties.sorted(by: { $0.key < $1.key }) {
            try PropertyRule.rule(of: name)?.check(name, value)
        }
        for role in Role.allCases { try validate(role) }
    }

    /// Checks one property by itself.
    package static func validate(property: String, value: String) throws(KafkaError) {
        let settings = KafkaClientSettings(
            bootstrap: "", group: "", properties: [property: value])
        if let problem = ForeignProperty.problem(of: property, value) {
            throw .invalidProperty(property, message: problem)
        }
        try PropertyRule.rule(of: property)?.check(property, value)
        try settings.refuseUnsafeProperties(libraryVersion: RdkafkaVersion.number)
        if let ours = OIDCSettings.Property(rawValue: property) { return try ours.check(value) }
        // Of a library that has one protocol only, what is allowed is that one.
        if property == GroupProtocol.property, !GroupProtocol.isInLibrary { return }
        try settings.set([property: value], in: Configuration())
    }

    /// Every property name that librdkafka or this product knows, refused ones included.
    package static var knownProperties: [String] {
        Array(Set(Configuration.names + OIDCSettings.Property.allCases.map(\.rawValue))).sorted()
    }

    /// Properties for which not every value of librdkafka's is allowed: the allowed values (nil for
    /// none) and the reason.
    package static var restrictedProperties: [(property: String, notation: String?, reason: String)]
    { PropertyRule.reference }

    private func validate(_ role: Role) throws(KafkaError) {
        var trial = try merged(for: role)
        // Only the member of a group sends heartbeats.
        if role == .events { try Self.refuseSlowHeartbeats(trial) }
        trial["bootstrap.servers"] = nil
        // A consumer that belongs to a group would look for its coordinator.
        trial["group.id"] = nil
        // Otherwise a librdkafka with Kerberos would renew its ticket at once.
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

    /// How the group's members share the partitions. Of a group whose waits its session bounds, the
    /// brokers must not decide how long that is.
    var groupProtocol: GroupProtocol {
        GroupProtocol(boundsWaitsBySession ? [:] : plainProperties)
    }

    /// Whether the member of the group keeps its identity over restarts.
    var isStaticMember: Bool { properties["group.instance.id"] != nil }

    enum Role: CaseIterable {
        case events, table, records, producer, outcomes, admin, writeProbe

        var kind: Client.Kind {
            switch self {
            case .events, .table, .records, .admin: .consumer
            case .producer, .outcomes, .writeProbe: .producer
            }
        }
    }

    /// - Parameter debug: which parts of the library are to log all that they do, in its words; nil
    ///   for those of the user's properties.
    func configuration(
        for role: Role, debug: String? = nil
    ) throws(KafkaError) -> Configuration {
        let configuration = Configuration()
        var merged = try merged(for: role)
        if let debug { merged["debug"] = debug }
        try set(merged, in: configuration)
        return configuration
    }

    private func merged(for role: Role) throws(KafkaError) -> [String: String] {
        try refuseUnsafeProperties(libraryVersion: RdkafkaVersion.number)
        _ = try oidc.get()
        let properties = try PropertyRule.underPreferredNames(
            OIDCSettings.without(plainProperties))
        var merged = role.defaults(isStatic: isStaticMember)
        merged = merged.filter { !groupProtocol.refusedProperties.contains($0.key) }
        if isFrugal { merged.merge(role.frugalDefaults) { _, frugal in frugal } }
        merged.merge(properties) { _, theirs in theirs }
        merged.merge(role.invariants) { _, ours in ours }
        // Only a member of the group has a protocol, and not every librdkafka knows that there are two.
        merged[GroupProtocol.property] = nil
        let isConsumer = role == .events && groupProtocol == .consumer
        if !isConsumer { merged[GroupProtocol.remoteAssignor] = nil }
        if role == .events, GroupProtocol.isInLibrary {
            merged[GroupProtocol.property] = isConsumer ? "consumer" : "classic"
        }
        // librdkafka refuses a fetch size below the largest message size.
        if properties["fetch.max.bytes"] == nil,
            let fetch = merged["fetch.max.bytes"].flatMap({ Int($0) }),
            let message = properties["message.max.bytes"].flatMap({ Int($0) })
        {
            merged["fetch.max.bytes"] = "\(max(fetch, message))"
        }
        merged["bootstrap.servers"] = bootstrap
        if [.events, .table, .records].contains(role) { merged["group.id"] = group }
        if role == .producer, boundsWaitsBySession {
            merged["message.timeout.ms"] = "\(writeTimeout(merged))"
        }
        if role == .events, boundsWaitsBySession, merged[Self.pollInterval] == nil {
            // As long waits a consumer for the answer to its request to join (librdkafka's default is five
            // minutes), and the coordinator for a member that does not join again.
            merged[Self.pollInterval] = "\(max(30_000, session(merged)))"
        }
        return merged
    }

    private static let pollInterval = "max.poll.interval.ms"

    /// In milliseconds.
    private func session(_ merged: [String: String]) -> Int {
        let name = "session.timeout.ms"
        let session = merged[name] ?? Role.events.defaults(isStatic: isStaticMember)[name]
        return session.flatMap { Int($0) } ?? 0
    }

    /// In milliseconds.
    private func writeTimeout(_ producer: [String: String]) -> Int {
        let most = max(1, session(producer) * 2 / 3)
        let own = producer["message.timeout.ms"].flatMap { Int($0) } ?? 0
        return own > 0 ? min(own, most) : most
    }

    private func set(
        _ properties: [String: String], in configuration: borrowing Configuration
    ) throws(KafkaError) {
        // Sorted, so that the same one of several mistakes is always reported.
        for (name, value) in properties.sorted(by: { $0.key < $1.key }) {
            do throws(ConfigurationError) {
                try configuration.set(name, value)
            } catch {
                throw translated(error)
            }
        }
    }

    /// Makes a client, which gets its tokens from `tokens` if it needs any.
    func client(for role: Role, logger: Logger) throws(KafkaError) -> Client {
        try client(
            role, try configuration(for: role), log: LibraryLog.sink(logger, secrets: secrets))
    }

    /// As above, with a configuration and a place for the library's lines.
    func client(
        _ role: Role, _ configuration: borrowing Configuration, log: @escaping Client.LogSink
    ) throws(KafkaError) -> Client {
        var refresh: Client.TokenRefresh?
        if let tokens { refresh = { recipient in try tokens.refresh(recipient) } }
        do throws(RdkafkaError) {
            return try Client(
                role.kind, configuration: configuration, tokens: refresh, log: log,
                redact: { [secrets] in secrets.redact($0) })
        } catch {
            // For instance a file cannot be read, or properties exclude each other.
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

    /// Throws for a property that no client of the worker may be given.
    func refuseUnsafeProperties(libraryVersion: Int) throws(KafkaError) {
        for (name, value) in plainProperties.sorted(by: { $0.key < $1.key }) {
            guard let rule = PropertyRule.rule(of: name), rule.isReserved else { continue }
            try rule.check(name, value)
        }
        try GroupProtocol.check(plainProperties, libraryVersion: libraryVersion)
    }

    /// Throws if the heartbeat interval exceeds a third of the session timeout. A member without a
    /// heartbeat within its session is expelled and rejoins, again and again; a third leaves room
    /// for two lost heartbeats.
    /// How often offsets are committed at most, as librdkafka's own commits are.
    var commitIntervalMilliseconds: Int {
        let defaults = Role.events.defaults(isStatic: false)
        let text = plainProperties["auto.commit.interval.ms"] ?? defaults["auto.commit.interval.ms"]
        guard let interval = text.flatMap({ Int($0) }) else {
            preconditionFailure("only a commit interval that is a number is accepted")
        }
        return interval
    }

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
    /// The defaults, which the user may override.
    /// - Parameter isStatic: whether the member keeps its identity over restarts.
    func defaults(isStatic: Bool) -> [String: String] {
        var values = [
            "client.id": "lamplighter",
            "socket.keepalive.enable": "true",
            // librdkafka before 2.10 leaves Nagle's algorithm on.
            "socket.nagle.disable": "true",
            // An unreachable broker holds up coordinator queries for this long (librdkafka 4970).
            "socket.timeout.ms": "30000",
            "reconnect.backoff.max.ms": "5000",
        ]
        switch self {
        case .events:
            // After a crash, what was read since the last commit is sent again: at most 200 ms of
            // it.
            values["auto.commit.interval.ms"] = "200"
            values["partition.assignment.strategy"] = "range"
            values["fetch.wait.max.ms"] = "100"
            // The partitions of a member that died are not read until its session expires, and if
            // another joins meanwhile the whole group waits for that. 15 s, because Kafka notices a
            // dead broker after 9 s, and if the coordinator is away for longer than the session
            // every member loses its partitions. A static member's restart causes no rebalance
            // while its session lasts, so its session is longer.
            values["session.timeout.ms"] = isStatic ? "45000" : "15000"
            // Members learn of a rebalance from the answer to a heartbeat, and all wait for the
            // last.
            values["heartbeat.interval.ms"] = "1000"
            values["queued.max.messages.kbytes"] = "65536"
        case .table:
            // The end of a partition is noticed within one empty fetch.
            values["fetch.wait.max.ms"] = "50"
            // Every queued record takes 0.4 KiB on top, and the queue is in memory together with
            // the index: with 256 MiB a replay of a million registrations took 400 MiB more, and
            // was not faster.
            values["queued.max.messages.kbytes"] = "32768"
            // An answer is decompressed as a whole, however full the queue is: 50 MB may become 200
            // MB.
            values["fetch.max.bytes"] = "4194304"
        case .records:
            // One record of a partition is wanted, seldom a few: what follows it is fetched for nothing.
            values["fetch.wait.max.ms"] = "50"
            values["fetch.message.max.bytes"] = "65536"
            values["queued.max.messages.kbytes"] = "4096"
            values["fetch.max.bytes"] = "4194304"
        case .producer, .outcomes:
            values["compression.type"] = "lz4"
            values["linger.ms"] = "5"
            // The partitioner of Java's client, so that a key's records from all producers share a
            // partition.
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

    /// What a client that takes little memory has instead of the defaults.
    var frugalDefaults: [String: String] {
        switch self {
        case .table:
            [
                "queued.max.messages.kbytes": "1024", "fetch.max.bytes": "262144",
                "fetch.message.max.bytes": "65536", "message.max.bytes": "262144",
            ]
        case .producer:
            [
                "queue.buffering.max.messages": "5000", "queue.buffering.max.kbytes": "2048",
                // Nobody waits for one of its records: in larger batches they take less of everything.
                "linger.ms": "50",
            ]
        case .events, .records, .outcomes, .admin, .writeProbe: [:]
        }
    }

    /// The settings that nobody may override.
    var invariants: [String: String] {
        switch self {
        case .events:
            [
                "enable.auto.commit": "true", "enable.auto.offset.store": "false",
                // `StartResolver` chooses start offsets. A position that is no longer in the log is
                // an error to report, not to skip silently.
                "auto.offset.reset": "error", "enable.partition.eof": "true",
                "allow.auto.create.topics": "false",
            ]
        case .table, .records:
            [
                "enable.auto.commit": "false", "enable.auto.offset.store": "false",
                "auto.offset.reset": "error", "enable.partition.eof": "true",
                "allow.auto.create.topics": "false",
            ]
        case .producer:
            ["enable.idempotence": "true", "acks": "all"]
        case .outcomes:
            // Its records may be lost, so they take little memory. Without idempotence one that is
            // given up holds up no other. Nobody has looked whether the topic exists, and a producer's
            // request for it would create it with the brokers' defaults.
            [
                "allow.auto.create.topics": "false",
                "enable.idempotence": "false", "acks": "all", "linger.ms": "100",
                "message.timeout.ms": "30000", "queue.buffering.max.messages": "20000",
                "queue.buffering.max.kbytes": "16384",
            ]
        case .admin:
            // A request for a topic's metadata must not create it.
            ["allow.auto.create.topics": "false"]
        case .writeProbe:
            // Kafka writes no record with these settings; see `RightsProbe`.
            [
                "enable.idempotence": "false", "acks": "2", "retries": "0", "linger.ms": "0",
                "message.timeout.ms": "8000",
            ]
        }
    }
}
