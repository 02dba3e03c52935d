// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import EmbeddedKafka
import Foundation
import KafkaLog
import OpenSSL
import Rdkafka
import TestCertificates
import Testing

/// What an operator reads when no connection to Kafka can be made. Each of these is tried on a real
/// socket; the sentences are made of what the library says, which another version may say
/// otherwise.
@Suite struct `A failed connection to Kafka` {
    private let fixture: KafkaFixture
    private let authority: CertificateAuthority
    private let scratch: URL

    init() throws {
        fixture = try KafkaFixture(["events": 1])
        authority = try CertificateAuthority(name: "Test CA")
        scratch = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: scratch, withIntermediateDirectories: true)
    }

    private func file(of authority: CertificateAuthority) throws -> String {
        let file = scratch.appending(path: "\(UUID().uuidString).pem")
        try authority.certificatePEM.write(to: file, atomically: true, encoding: .utf8)
        return file.path
    }

    /// Asks for a topic's partitions.
    private func ask(
        _ bootstrap: String, _ properties: [String: String], within limit: Duration = .seconds(5)
    ) throws -> Int32 {
        let settings = KafkaClientSettings(
            bootstrap: bootstrap, group: "fleet", properties: properties)
        return try TopicAdmin(settings: settings, timeout: limit, logger: fixture.logger)
            .partitionCount(of: "events")
    }

    /// Always waits until the time is over: first for a short one, in which a busy machine may not
    /// have come to the failure yet.
    private func failure(
        _ bootstrap: String, _ properties: [String: String]
    ) -> ConnectionFailure? {
        for limit in [Duration.seconds(1), .seconds(5), .seconds(30)] {
            do {
                _ = try ask(bootstrap, properties, within: limit)
            } catch KafkaError.noConnection(let failure) where failure.kind != .silent {
                return failure
            } catch KafkaError.noConnection, KafkaError.unreachable {
                continue
            } catch {
                Issue.record("\(error)")
            }
        }
        return nil
    }

    private func tls(_ authority: CertificateAuthority) throws -> [String: String] {
        ["security.protocol": "ssl", "ssl.ca.location": try file(of: authority)]
    }

    @Test func `a Kafka behind TLS is spoken to when all is well`() throws {
        let front = try KafkaTLSFront(
            before: fixture.kafka.bootstrap, authority.serverCertificate())
        defer { front.close() }
        #expect(try ask(front.bootstrap, tls(authority)) == 1)
        let unverified = [
            "security.protocol": "ssl", "enable.ssl.certificate.verification": "false",
        ]
        #expect(try ask(front.bootstrap, unverified) == 1)
    }

    @Test func `an unknown authority, an expired certificate and another name are told apart`()
        throws
    {
        func kind(
            _ certificate: ServerCertificate, trusting authority: CertificateAuthority
        ) throws -> ConnectionFailure.Kind? {
            let front = try KafkaTLSFront(before: fixture.kafka.bootstrap, certificate)
            defer { front.close() }
            let failure = try failure(front.bootstrap, tls(authority))
            #expect(failure?.broker == front.bootstrap)
            return failure?.kind
        }
        let other = try CertificateAuthority(name: "Another CA")
        #expect(
            try kind(authority.serverCertificate(), trusting: other) == .unknownAuthority)
        #expect(
            try kind(authority.serverCertificate(expired: true), trusting: authority) == .expired)
        let elsewhere = try authority.serverCertificate(names: ["kafka.example"], addresses: [])
        #expect(try kind(elsewhere, trusting: authority) == .otherName)
    }

    @Test func `a wrong password and a mechanism that is not there are told apart`() throws {
        let gate = try KafkaSASLGate(before: fixture.kafka.bootstrap, mechanism: "PLAIN")
        defer { gate.close() }
        var properties = [
            "security.protocol": "sasl_plaintext", "sasl.mechanism": "PLAIN",
            "sasl.username": "lamplighter", "sasl.password": "wrong-pass",
        ]
        let refused = failure(gate.bootstrap, properties)
        #expect(refused?.kind == .credentials && refused?.isConfiguration == true)
        #expect(refused?.description.contains("wrong-pass") == false)
        properties["sasl.mechanism"] = "SCRAM-SHA-512"
        let unknown = failure(gate.bootstrap, properties)
        #expect(unknown?.kind == .mechanism)
        #expect(unknown?.description.contains("(PLAIN)") == true)
    }

    @Test(arguments: [
        "SASL Handshake not supported by broker (required by mechanism PLAIN)",
        "SASL authentication error: Request not valid in current SASL state",
    ])
    func `a port without SASL is not taken for a wrong password`(words: String) throws {
        let line =
            "[thrd:sasl_plaintext://kafka:9092/bootstrap]: sasl_plaintext://kafka:9092/bootstrap: "
            + "\(words) (after 1ms in state AUTH_HANDSHAKE)"
        let failure = try #require(ConnectionFailure(lines: [line], refusal: nil))
        #expect(failure.kind == .noSASL && failure.isConfiguration)
        #expect(failure.broker == "kafka:9092")
        #expect(failure.description.contains("has no SASL on this port: set kafka.properties"))
    }

    @Test func `TLS to a plaintext port and plaintext to a TLS port are named`() throws {
        let toPlaintext = try failure(fixture.kafka.bootstrap, tls(authority))
        #expect(toPlaintext?.kind == .plaintextPort)
        let front = try KafkaTLSFront(
            before: fixture.kafka.bootstrap, authority.serverCertificate())
        defer { front.close() }
        #expect(failure(front.bootstrap, [:])?.kind == .tlsPort)
    }

    @Test func `a closed port and a name that nobody has are named`() throws {
        try fixture.kafka.perform(.down(broker: 1))
        #expect(failure(fixture.kafka.bootstrap, [:])?.kind == .refused)
        #expect(failure("nobody.invalid:9092", [:])?.kind == .unresolved)
    }

    @Test func `properties with which the library does not start are told as such`() throws {
        let error = #expect(throws: KafkaError.self) {
            try ask(
                fixture.kafka.bootstrap,
                ["security.protocol": "ssl", "ssl.ca.location": "/nonexistent.pem"])
        }
        guard case .refusedTogether(let message) = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(message.contains("ssl.ca.location"))
    }

    /// What a real Kafka's listeners have been seen to say and the ones above do not.
    @Test(arguments: [
        (
            "SASL authentication error: Authentication failed during authentication due to "
                + "invalid credentials with SASL mechanism SCRAM-SHA-512 (after 3ms in state "
                + "AUTH_REQ)", ConnectionFailure.Kind.credentials
        ),
        (
            "ApiVersionRequest failed: Disconnected while requesting ApiVersion: might be caused "
                + "by incorrect security.protocol configuration (connecting to a SSL listener?) "
                + "or broker version is < 0.10 (see api.version.request)", .tlsPort
        ),
        (
            "Disconnected: connection closed by peer: receive 0 after POLLIN (after 0ms in state "
                + "APIVERSION_QUERY)", .tlsPort
        ),
        (
            "SASL PLAIN mechanism handshake failed: Broker: Request not valid in current SASL "
                + "state: broker's supported mechanisms: ", .noSASL
        ),
        ("Disconnected (after 1ms in state UP)", .wantsSASL),
        (
            "Receive failed: ssl/statem: ssl read: error:0A00045C:SSL routines::tlsv13 alert "
                + "certificate required", .clientCertificate
        ),
        ("Connection setup timed out in state CONNECT (after 30028ms in state CONNECT)", .silent),
        ("1 request(s) timed out: disconnect (after 416816ms in state UP)", .silent),
        ("ApiVersionRequest failed: Local: Timed out: probably due to broker version", .silent),
    ])
    func `a line of the library is understood`(line: String, kind: ConnectionFailure.Kind) {
        let lines = [
            "[thrd:x]: sasl_ssl://broker-1:9093/bootstrap: \(line)",
            "[thrd:x]: sasl_ssl://broker-1:9093/bootstrap: something that says nothing",
        ]
        let failure = ConnectionFailure(lines: lines, refusal: nil)
        #expect(failure?.kind == kind && failure?.broker == "broker-1:9093")
    }

    /// What brokers of clouds answer to a login that they refuse, and what is to be made of it.
    @Test(
        arguments: [
            ("The request was rejected by firewall checks.", .firewall, false),
            ("Client IP address is not allowed to access the namespace", .firewall, false),
            ("Public network access is disabled", .firewall, false),
            ("The request was throttled. Please wait 4 seconds and try again.", .turnedAway, false),
            ("[4f2c]: Too many connects", .turnedAway, false),
            ("The server is busy. Please try again later. TrackingId:x", .turnedAway, false),
            ("Internal Server Error", .turnedAway, false),
            ("Rate limit exceeded", .turnedAway, false),
            ("This client is rate-limited.", .turnedAway, false),
            ("An internal error occurred", .turnedAway, false),
            ("The login timed out", .turnedAway, false),
            ("Unable to reach the identity provider", .turnedAway, false),
            ("Connection refused by the directory", .turnedAway, false),
            ("Invalid connection string", .connectionString, true),
            ("Malformed connection string", .connectionString, true),
            ("The connection string has expired", .credentials, true),
            (
                "The Service Bus connection string is not of the expected format. Please check the "
                    + "string before trying again.", .connectionString, true
            ),
            (
                "Unauthorized access. 'Listen' claim(s) are required to perform this operation.",
                .credentials, true
            ),
            ("Authentication failed: Invalid username or password", .credentials, true),
            ("[1a2b]: Access denied", .credentials, true),
            ("IP address 10.0.0.3 is not allowed", .firewall, false),
            ("Quota exceeded for this namespace", .turnedAway, false),
            // What only names something decides nothing.
            ("login failed from IP address 10.0.0.3", .credentials, true),
            ("Invalid password for user quota-service", .credentials, true),
            ("Access denied to throttling-service", .credentials, true),
            ("Access denied to rate-limited-app", .credentials, true),
            ("Access denied to rate-limiter.", .credentials, true),
            ("Invalid password for user throttler", .credentials, true),
            ("Unknown principal 'throttled by firewall'", .credentials, true),
            ("Access denied to \"too many connects\"", .credentials, true),
            ("Temporary password has to be changed", .credentials, true),
            ("Broker: SASL Authentication failed", .credentials, true),
        ] as [(String, ConnectionFailure.Kind, Bool)])
    func `what a broker says of a login stands in the message, and decides`(
        words: String, kind: ConnectionFailure.Kind, isConfiguration: Bool
    ) throws {
        let line =
            "[thrd:sasl_ssl://kafka:9093/bootstrap]: sasl_ssl://kafka:9093/bootstrap: SASL "
            + "authentication error: \(words) (after 2ms in state AUTH_REQ)"
        let failure = try #require(ConnectionFailure(lines: [line], refusal: nil))
        #expect(failure.kind == kind && failure.isConfiguration == isConfiguration)
        #expect(failure.broker == "kafka:9093")
        #expect(failure.description.contains("(it says: \(words))"), "\(failure)")
    }

    @Test func `a broker's words are bounded, on one line and without secrets`() throws {
        let words =
            "no user lamp\u{1b}[31m with s3cret-word\n" + String(repeating: "x", count: 4000)
        let line = "ssl://kafka:9093/1: SASL authentication error: \(words) (after 2ms in state X)"
        let failure = try #require(
            ConnectionFailure(lines: [line], refusal: nil) {
                $0.replacing("s3cret-word", with: "[secret]")
            })
        let text = failure.description
        #expect(text.contains("with [secret]") && !text.contains("s3cret"))
        #expect(!text.contains("\u{1b}") && !text.contains("\n") && text.utf8.count < 600)
    }

    @Test func `a secret across the cut of a broker's words is not shown in part`() throws {
        for before in 290...300 {
            let words = String(repeating: "x", count: before) + "s3cret-word and more"
            let line = "ssl://kafka:9093/1: SASL authentication error: \(words) (after 2ms in UP)"
            let failure = try #require(
                ConnectionFailure(lines: [line], refusal: nil) {
                    $0.replacing("s3cret-word", with: "[secret]")
                })
            #expect(!failure.description.contains("xs3"), "\(failure)")
        }
    }

    @Test func `an answer that the library cannot read is told as such`() throws {
        for words in [
            "ApiVersionRequest failed: Local: Bad message format: probably due to broker version "
                + "< 0.10 (see api.version.request configuration) (after 2ms in state "
                + "APIVERSION_QUERY)",
            "ApiVersionRequest failed: Local: Read underflow (after 2ms in state APIVERSION_QUERY)",
        ] {
            let failure = try #require(
                ConnectionFailure(lines: ["[thrd:x]: kafka:9092/1: \(words)"], refusal: nil))
            #expect(failure.kind == .unreadable && !failure.isConfiguration)
            #expect(failure.description.contains("what librdkafka cannot read ("))
        }
    }

    @Test(arguments: [
        (0x0201_01ff, ", which cannot pass over tagged fields: 2.2 and newer can"),
        (0x0202_00ff, ""),
    ])
    func `a library that loses its place at tagged fields is named`(version: Int, remark: String) {
        #expect(ConnectionFailure.tagsRemark(libraryVersion: version) == remark)
    }

    @Test(arguments: [
        "Connection setup timed out in state CONNECT (after 30028ms in state CONNECT)",
        "Connect to ipv4#10.0.0.1:9092 failed: Connection refused (after 0ms in state CONNECT)",
        "SSL handshake failed: Disconnected (after 5ms in state SSL_HANDSHAKE)",
    ])
    func `an answer that cannot be read tells more than a connection that fails`(other: String) {
        let unreadable = "ApiVersionRequest failed: Local: Read underflow (after 2ms in state X)"
        for words in [[other, unreadable], [unreadable, other]] {
            let lines = words.map { "[thrd:x]: kafka:9092/1: \($0)" }
            #expect(ConnectionFailure(lines: lines, refusal: nil)?.kind == .unreadable)
        }
    }

    @Test func `a connection that is lost after it has served is not said to want SASL`() {
        let line = "[thrd:x]: kafka:9092/1: Disconnected (after 416816ms in state UP)"
        #expect(ConnectionFailure(lines: [line], refusal: nil) == nil)
    }
}
