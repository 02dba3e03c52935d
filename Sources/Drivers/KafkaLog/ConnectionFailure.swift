// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
package import Rdkafka

/// Why a connection to Kafka fails, derived from what librdkafka logged about each attempt.
package struct ConnectionFailure: Hashable, Sendable {
    package enum Kind: Hashable, Sendable {
        /// What is wrong with the broker's certificate.
        case expired, notYetValid, otherName, unknownAuthority, certificate
        /// The broker requires a client certificate.
        case clientCertificate
        /// The broker refuses the user or the password.
        case credentials
        /// The broker refuses the login for another reason, which its words tell.
        case connectionString, firewall, turnedAway
        case mechanism, noSASL, wantsSASL
        /// A broker's answer is none that the library can read.
        case unreadable
        case plaintextPort, tlsPort, handshake
        case unresolved, refused, silent
    }

    package let kind: Kind
    /// The broker's `host:port`, as far as known.
    package let broker: String
    /// What else librdkafka or the broker reports: one line, without secrets.
    let detail: String
    /// Whether Kafka has answered this client before: what it is configured with was right then.
    package var hasAnswered = false

    /// - Parameters:
    ///   - lines: lines of librdkafka's log, oldest first.
    ///   - redact: takes secrets out of a text of the other side's.
    package init?(
        lines: [String], refusal: CertificateRefusal?, redact: (String) -> String = { $0 }
    ) {
        if let refusal {
            kind =
                switch refusal.cause {
                case .expired: .expired
                case .notYetValid: .notYetValid
                case .otherName: .otherName
                case .unknownAuthority: .unknownAuthority
                case .other: .certificate
                }
            broker = refusal.broker
            detail = refusal.reason
            return
        }
        // The most telling marks come first: disconnections follow a wrong password.
        for (kind, marks) in Self.marks {
            let last = lines.last { line in
                marks.contains { line.contains($0) }
                    && (kind != .wantsSASL || Self.endsAtOnce(line))
                    || kind == .tlsPort && Self.endsBeforeVersions(line)
            }
            guard let last else { continue }
            let words = Self.detail(of: last, kind: kind)
            self.kind = kind == .credentials ? Self.refusal(in: words) : kind
            broker = Self.broker(in: last)
            detail = Self.shown(redact(words))
            return
        }
        return nil
    }

    private static let marks: KeyValuePairs<Kind, [String]> = [
        .noSASL: ["not valid in current SASL state", "SASL Handshake not supported by broker"],
        .mechanism: ["mechanism handshake failed"],
        .credentials: ["SASL authentication error", "authentication failed"],
        .clientCertificate: [
            "certificate required", "alert bad certificate", "might be required",
        ],
        .plaintextPort: ["connecting to a PLAINTEXT broker listener", "wrong version number"],
        .tlsPort: ["connecting to a SSL listener", "Invalid response size"],
        // Something has answered: that is surer than a time-out or a refusal beside it.
        .unreadable: [
            "ApiVersionRequest failed: Local: Bad message format",
            "ApiVersionRequest failed: Broker: ", "Local: Read underflow",
            "Protocol parse failure", "Protocol read buffer underflow",
        ],
        .handshake: ["SSL handshake failed", "ssl read"],
        .unresolved: ["Failed to resolve"],
        .refused: ["Connection refused", "Network is unreachable", "No route to host"],
        .silent: ["timed out in state", "request(s) timed out", "Local: Timed out"],
        .wantsSASL: ["in state UP"],
    ]

    /// Whether the connection of the line was up for less than a second. One that has served for
    /// longer wants nothing that it was not given.
    private static func endsAtOnce(_ line: String) -> Bool {
        let match = line.firstMatch(of: /\(after (\d{1,18})ms in state UP/)
        return match.flatMap { Int($0.1) }.map { $0 < 1000 } ?? false
    }

    /// Whether the connection of the line was closed before the broker had named its versions. Newer
    /// libraries no longer say what that may mean.
    private static func endsBeforeVersions(_ line: String) -> Bool {
        line.contains("Disconnected") && line.contains("in state APIVERSION_QUERY")
    }

    /// Whether the line tells only that a connection has ended which had served, as idle ones do.
    fileprivate static func isIdleEnd(_ line: String) -> Bool {
        line.contains("Disconnected (after ") && line.contains("in state UP") && !endsAtOnce(line)
    }

    /// The line without librdkafka's name of the thread before it, as in `[thrd:x]: `.
    fileprivate static func withoutThread(_ line: String) -> Substring {
        guard line.hasPrefix("[thrd:"), let end = line.firstRange(of: "]: ") else {
            return line[...]
        }
        return line[end.upperBound...]
    }

    /// The `host:port` in a line such as `[thrd:x]: ssl://host:port/bootstrap: …`. The prefix, the
    /// scheme and the suffix are optional.
    private static func broker(in line: String) -> String {
        var rest = withoutThread(line)
        // The group's coordinator has a connection of its own, whose name comes before the address.
        if rest.hasPrefix("GroupCoordinator"), let name = rest.firstRange(of: ": ") {
            rest = rest[name.upperBound...]
        }
        if let scheme = rest.firstRange(of: "://") { rest = rest[scheme.upperBound...] }
        let broker = rest.prefix { !$0.isWhitespace && $0 != "/" }
        return broker.hasSuffix(":") ? String(broker.dropLast()) : String(broker)
    }

    private static func detail(of line: String, kind: Kind) -> String {
        let start: Range<String.Index>? =
            switch kind {
            case .mechanism: line.ranges(of: "supported mechanisms: ").last
            // The broker's own words may have colons in them.
            case .credentials:
                line.firstRange(of: "SASL authentication error: ") ?? line.ranges(of: ": ").last
            case .unreadable:
                line.firstRange(of: "ApiVersionRequest failed: ") ?? line.ranges(of: ": ").last
            default: line.ranges(of: ": ").last
            }
        guard let start else { return "" }
        let text = line[start.upperBound...]
        return String(text[..<(text.ranges(of: " (after ").last?.lowerBound ?? text.endIndex)])
    }

    private static let wordsMax = 300

    /// Text of the other side's, as people are shown it.
    static func shown(_ text: String) -> String {
        String(text.unicodeScalars.prefix(wordsMax)).printable
    }

    /// What brokers say when a login fails for another reason than its user or its password: Azure's
    /// Event Hubs and Amazon's MSK answer with the same error code, and with a sentence. Phrases,
    /// since a single word may be a user's name, or stand beside an address that is only told.
    private static let refusals: KeyValuePairs<Kind, [String]> = [
        // One that has expired, or is of another namespace, is a connection string nevertheless.
        .connectionString: [
            "connection string is not of the expected format", "invalid connection string",
            "malformed connection string",
        ],
        .firewall: [
            "by firewall", "by the firewall", "firewall rule", "firewall check",
            "address is not allowed", "address not allowed", "address is blocked",
            "not allowed by ip", "prevented to connect", "public network access", "public access",
            "network rule", "virtual network",
        ],
        .turnedAway: [
            "throttl", "too many connect", "too many request", "server is busy", "server busy",
            "try again later", "temporarily", "temporary failure", "temporary error",
            "quota exceeded", "quota is exceeded", "quota has been exceeded", "exceeded the quota",
            "exceeds the quota", "over quota", "internal server error", "service unavailable",
            "is unavailable", "currently unavailable", "rate limit", "rate-limit",
            "internal error", "timed out", "unable to reach", "connection refused",
        ],
    ]

    private static func refusal(in words: String) -> Kind {
        let words = withoutNames(words.lowercased())
        return refusals.first { $0.value.contains { words.contains($0) } }?.key ?? .credentials
    }

    /// The words without what may be a name or an address: what is in quotes, what follows `user`,
    /// and what has a digit or a hyphen in it, such as `quota-service`. Of words with a hyphen only
    /// "rate-limited" and its like are known to be none.
    private static func withoutNames(_ words: String) -> String {
        words.replacing(/"[^"]*"|(?:^|\s)'[^']*'/, with: " ")
            .replacing(/(?:^|\s)user(?:name)?:?\s+\S+/, with: " user")
            .split(whereSeparator: \.isWhitespace)
            .filter { !mayBeName($0) }
            .joined(separator: " ")
    }

    private static func mayBeName(_ word: Substring) -> Bool {
        word.contains(/[0-9_@\-]/)
            && word.wholeMatch(of: /[^a-z0-9_@\-]*rate-limit(?:ed|ing)?[^a-z0-9_@\-]*/) == nil
    }

    /// Whether a restart is useless until the configuration changes.
    package var isConfiguration: Bool {
        switch kind {
        case .otherName, .unknownAuthority, .certificate, .clientCertificate, .credentials,
            .connectionString, .mechanism, .noSASL:
            true
        // What a firewall or a quota refuses now, it may let in without a change here.
        case .expired, .notYetValid, .firewall, .turnedAway, .wantsSASL, .plaintextPort, .tlsPort,
            .handshake, .unresolved, .refused, .silent, .unreadable:
            false
        }
    }
}

extension ConnectionFailure: CustomStringConvertible {
    package var description: String { "Kafka does not answer: \(trouble): \(remedy)" }

    /// What is wrong with which broker.
    package var trouble: String { "\(broker) \(wrong)" }

    private var wrong: String {
        switch kind {
        case .expired: "shows a certificate that has expired, or whose issuer's has"
        case .notYetValid: "shows a certificate that is not valid yet"
        case .otherName: "shows a certificate for another host name"
        case .unknownAuthority: "shows a certificate of an authority that is not trusted here"
        case .certificate: "shows a certificate that is not accepted (\(detail))"
        case .clientCertificate: "requires a client certificate"
        case .credentials: "refuses the user name or the password\(said)"
        case .connectionString: "refuses the password, which is no connection string\(said)"
        case .firewall: "refuses this machine's address\(said)"
        case .turnedAway: "refuses logins for now\(said)"
        case .unreadable:
            "answers with what librdkafka cannot read" + (detail.isEmpty ? "" : " (\(detail))")
        case .mechanism: "does not take this SASL mechanism"
        case .noSASL: "has no SASL on this port"
        case .wantsSASL: "closes the connection as soon as it is asked for something"
        case .plaintextPort: "does not speak TLS on this port, or closes the connection at once"
        case .tlsPort: "does not speak plaintext on this port, or closes the connection at once"
        case .handshake: "ends the TLS handshake (\(detail))"
        case .unresolved: "cannot be found: its name does not resolve"
        case .refused: "takes no connection (\(detail))"
        case .silent: "does not answer to a connection"
        }
    }

    private var said: String { detail.isEmpty ? "" : " (it says: \(detail))" }

    /// What to do about it.
    package var remedy: String {
        switch kind {
        case .noSASL, .wantsSASL, .plaintextPort, .tlsPort:
            hasAnswered
                ? "it has answered before as it is configured here: check that the broker is up, and "
                    + "what is between it and this machine"
                : protocolRemedy
        case .expired: "renew it on the broker, and check this machine's clock"
        case .notYetValid: "check the clocks of this machine and of the broker"
        case .otherName:
            "name the broker in kafka.bootstrap, and in its advertised.listeners, as "
                + "its certificate does"
        case .unknownAuthority:
            "set kafka.properties: ssl.ca.location to the certificate of the authority"
        case .certificate: "check the broker's certificate and ssl.ca.location"
        case .clientCertificate:
            "set kafka.properties: ssl.certificate.location and ssl.key.location to one that it "
                + "trusts"
        case .credentials: "check kafka.properties: sasl.username and sasl.password"
        case .connectionString:
            "set kafka.properties: sasl.username to $ConnectionString, and sasl.password to the whole "
                + "connection string, from Endpoint=sb:// on"
        case .firewall:
            "let the address of this machine through in the cluster's network settings"
        case .turnedAway: "it may pass; if it stays, look for what connects so often"
        case .unreadable:
            "see what listens there: a Kafka before 0.10, another program, or one newer than "
                + "librdkafka \(RdkafkaVersion.text)"
                + Self.tagsRemark(libraryVersion: RdkafkaVersion.number)
        case .mechanism:
            "set kafka.properties: sasl.mechanism to one that it has"
                + (detail.isEmpty ? "" : " (\(detail))")
        case .handshake: "check kafka.properties: the ssl.… settings"
        case .unresolved: "check kafka.bootstrap, and the broker's advertised.listeners"
        case .refused: "check kafka.bootstrap, and that the broker is up"
        case .silent: "check kafka.bootstrap, and whether a firewall blocks it"
        }
    }

    /// The likeliest reason why an answer cannot be read: brokers that are not Apache's may send tagged
    /// fields where Apache's sends none, and librdkafka before 2.2 loses its place at them.
    package static func tagsRemark(libraryVersion: Int) -> String {
        libraryVersion < 0x0202_0000
            ? ", which cannot pass over tagged fields: 2.2 and newer can" : ""
    }

    /// What to do about a broker that speaks otherwise than it is spoken to.
    private var protocolRemedy: String {
        switch kind {
        case .noSASL:
            "set kafka.properties: security.protocol to plaintext or ssl, or name "
                + "another port in kafka.bootstrap"
        case .plaintextPort:
            "set kafka.properties: security.protocol to plaintext or "
                + "sasl_plaintext, or name another port in kafka.bootstrap"
        case .tlsPort:
            "set kafka.properties: security.protocol to ssl or sasl_ssl, or name "
                + "another port in kafka.bootstrap"
        default: "it may want SASL; see kafka.properties: security.protocol and sasl.mechanism"
        }
    }
}

extension Client {
    /// Why this client cannot connect; nil if no known failure was logged.
    var connectionFailure: ConnectionFailure? { connectionFailure(since: nil) }

    /// - Parameter start: leaves out the failures from before; nil for none. What was logged before
    ///   the last answer of a client that lives for days is not why it cannot connect now.
    func connectionFailure(since start: ContinuousClock.Instant?) -> ConnectionFailure? {
        ConnectionFailure(
            lines: troubles.lines(since: start), refusal: troubles.refusal(since: start),
            redact: troubles.redact)
    }
}

extension ConnectionTroubles {
    /// What librdkafka has said last of a connection that failed, without secrets; nil if nothing
    /// within a minute. In a client that lives for days an older line may be of an idle connection
    /// that was closed, and not why a call has just timed out; nor is a line that tells just that.
    package func lastWords(before now: ContinuousClock.Instant = .now) -> String? {
        let recent = lines(since: now - .seconds(60))
        guard let line = recent.last(where: { !ConnectionFailure.isIdleEnd($0) }) else {
            return nil
        }
        return ConnectionFailure.shown(redact(String(ConnectionFailure.withoutThread(line))))
    }
}
