// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// What to write in the place of properties that other clients of Kafka have, and librdkafka has not:
/// Java's above all, as the consoles of Kafka's hosts show them.
package struct ForeignProperty: Sendable {
    /// A name that ends with a dot stands for all that begin so.
    package let names: [String]
    package let remedy: String

    private init(_ names: String..., remedy: String) {
        self.names = names
        self.remedy = remedy
    }

    /// Nil for a property that no other client is known to have, and for one that librdkafka has
    /// too: newer versions take some of Java's, and say themselves what is wrong with a value.
    package static func remedy(
        for property: String, known: [String] = KafkaClientSettings.knownProperties
    ) -> String? {
        guard !known.contains(property) else { return nil }
        return table.first { row in
            row.names.contains {
                $0.hasSuffix(".") ? property.hasPrefix($0) : property == $0
            }
        }?.remedy
    }

    /// What is wrong with a value that another client takes; nil if nothing is known to be.
    static func problem(of property: String, _ value: String) -> String? {
        let mechanisms = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI"]
        switch PropertyRule.preferredName(of: property) {
        case "sasl.mechanisms" where value.uppercased() == "AWS_MSK_IAM":
            return "librdkafka has no AWS_MSK_IAM: give the worker a SCRAM user or a client "
                + "certificate, as docs/kafka.md has it for Amazon MSK"
        case "sasl.mechanisms" where !mechanisms.contains(value):
            return mechanisms.contains(value.uppercased())
                ? "must be written in capitals: \(value.uppercased())" : nil
        case "partition.assignment.strategy" where value.contains("Assignor"):
            return
                "must be range, roundrobin or cooperative-sticky, and not the name of a class of "
                + "Java's; range is the default"
        default: return nil
        }
    }

    package static let table: [ForeignProperty] = security + registry + reading + writing

    private static let security: [ForeignProperty] = [
        .init(
            "sasl.jaas.config",
            remedy: "set sasl.username and sasl.password to the username and the password in it"),
        .init(
            "ssl.truststore.location", "ssl.truststore.type",
            remedy: "set ssl.ca.location to a file with the authority's certificate in PEM (of a "
                + "JKS: keytool -exportcert -rfc); leave it out for a public authority"),
        .init(
            "ssl.truststore.certificates",
            remedy: "set ssl.ca.pem to the same text, or ssl.ca.location to a file with it"),
        .init(
            "ssl.truststore.password", remedy: "leave it out: certificates in PEM have no password"),
        .init(
            "ssl.keystore.type",
            remedy: "leave it out: ssl.keystore.location is a PKCS#12 file (of a JKS: keytool "
                + "-importkeystore -deststoretype pkcs12); of PEM set ssl.certificate.location and "
                + "ssl.key.location"),
        .init(
            "ssl.keystore.certificate.chain",
            remedy:
                "set ssl.certificate.pem to the same text, or ssl.certificate.location to a file "
                + "with it"),
        .init(
            "ssl.keystore.key",
            remedy: "set ssl.key.pem to the same text, or ssl.key.location to a file with it"),
        .init(
            "ssl.protocol", "ssl.enabled.protocols", "ssl.provider", "ssl.trustmanager.algorithm",
            "ssl.keymanager.algorithm", "ssl.secure.random.implementation", "security.providers",
            remedy: "leave it out: OpenSSL takes TLS 1.2 and newer by itself"),
        .init(
            "sasl.client.callback.handler.class", "sasl.login.callback.handler.class",
            "sasl.login.class",
            remedy: "leave it out: classes of Java's are not loaded; for tokens set "
                + "sasl.oauthbearer.method: oidc and its properties"),
        .init(
            "sasl.login.",
            remedy: "leave it out: tokens are renewed after four fifths of their life"),
        .init(
            "sasl.oauthbearer.jwks.", "sasl.oauthbearer.expected.",
            "sasl.oauthbearer.scope.claim.name", "sasl.oauthbearer.sub.claim.name",
            "sasl.oauthbearer.clock.skew.seconds",
            remedy: "leave it out: it is for brokers, which verify the tokens"),
        .init(
            "sasl.oauthbearer.metadata.", "sasl.oauthbearer.grant.type",
            "sasl.oauthbearer.assertion.",
            remedy: "leave it out: tokens are asked for with client credentials alone "
                + "(sasl.oauthbearer.method: oidc)"),
        .init("ssl_cafile", "ssl.cafile", remedy: "set ssl.ca.location"),
        .init("ssl_certfile", remedy: "set ssl.certificate.location"),
        .init("ssl_keyfile", remedy: "set ssl.key.location"),
        .init("sasl_plain_username", remedy: "set sasl.username"),
        .init("sasl_plain_password", remedy: "set sasl.password"),
        .init("sasl_mechanism", remedy: "set sasl.mechanism"),
        .init("security_protocol", remedy: "set security.protocol"),
        .init("bootstrap_servers", remedy: "set kafka.bootstrap, above properties"),
    ]

    private static let registry: [ForeignProperty] = [
        .init(
            "schema.registry.url", "azure.schema.registry.url", "apicurio.registry.url",
            remedy:
                "set kafka.schemaRegistry.urls, above properties: a registry with Confluent's API "
                + "(of Apicurio, …/apis/ccompat/v7)"),
        .init(
            "basic.auth.user.info", "schema.registry.basic.auth.user.info",
            remedy: "set kafka.schemaRegistry.user, and passwordFile to a file with the password"),
        .init(
            "basic.auth.credentials.source", "schema.registry.basic.auth.credentials.source",
            remedy: "leave it out: kafka.schemaRegistry.user and passwordFile are what is used"),
        .init("schema.registry.ssl.", remedy: "set kafka.schemaRegistry.caFile to a file in PEM"),
        .init(
            "auto.register.schemas", "specific.avro.reader", "specific.protobuf.value.type",
            "use.latest.version", "key.subject.name.strategy", "value.subject.name.strategy",
            remedy: "leave it out: records are read by the schema that each names "
                + "(kafka.events: valueSchema)"),
    ]

    private static let reading: [ForeignProperty] = [
        .init(
            "key.deserializer", "value.deserializer", "key.serializer", "value.serializer",
            remedy:
                "leave it out: kafka.events says how the records of each topic are read (decode, "
                + "keySchema, valueSchema)"),
        .init(
            "max.poll.records",
            remedy:
                "leave it out: records are read one by one, and queued.max.messages.kbytes bounds "
                + "what waits for it"),
        .init("fetch.max.wait.ms", remedy: "set fetch.wait.max.ms"),
        .init(
            "group.remote.assignor",
            remedy: "leave it out: it is for group.protocol=consumer, which needs librdkafka 2.12"),
        .init("exclude.internal.topics", remedy: "leave it out: topics are read by their names"),
        .init("client.dns.lookup", remedy: "leave it out: each address of a name is tried"),
        .init("default.api.timeout.ms", remedy: "set socket.timeout.ms"),
        .init("receive.buffer.bytes", remedy: "set socket.receive.buffer.bytes"),
        .init("send.buffer.bytes", remedy: "set socket.send.buffer.bytes"),
        .init(
            "metric.reporters", "metrics.", "interceptor.classes", "cluster.id",
            remedy: "leave it out: it is Java's alone"),
    ]

    private static let writing: [ForeignProperty] = [
        .init("buffer.memory", remedy: "set queue.buffering.max.kbytes"),
        .init("max.request.size", remedy: "set message.max.bytes"),
        .init("max.block.ms", remedy: "leave it out: a full queue holds back what is read"),
        .init(
            "partitioner.class",
            remedy: "leave it out: records are written with murmur2, as by Java"),
        .init(
            "spring.", "kafka.",
            remedy: "write the name without what Spring or another framework puts before it"),
    ]
}
