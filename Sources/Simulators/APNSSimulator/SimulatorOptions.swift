// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// The options of a simulator. The defaults serve production on a free port of the loopback
/// interface, with a certificate made at start, and know no team and no app.
package struct SimulatorOptions: Sendable {
    /// The listeners, one for each environment.
    package var listeners: [SimulatorListener] = [SimulatorListener(environment: .production)]
    /// The numeric address it binds to.
    package var address = "127.0.0.1"
    package var certificate: SimulatorCertificate = .generated(caFile: nil)

    /// The keys whose provider tokens are accepted.
    package var keys: [SimulatorKey] = []
    /// The apps that may be pushed to.
    package var apps: [SimulatorApp] = []
    /// The broadcast channels that exist at the start; requests make and delete others.
    package var channels: [SimulatorChannel] = []
    /// The most channels of an app in one environment: 10,000 with APNs.
    package var channelsMax = 10_000
    /// Push types beyond those that are built in.
    package var pushTypes: [SimulatorPushType] = []

    /// SETTINGS_MAX_CONCURRENT_STREAMS after the first valid provider token; before it 1, as with
    /// APNs. 1000 was observed at APNs in 2020 and 2021.
    package var streamLimit = 1000
    /// The delay of each answer, which is decided and logged when the request has arrived.
    package var delay: AnswerDelay = .zero
    /// Scripted answers for requests that are valid otherwise; the first that applies wins.
    package var rules: [ScriptedRule] = []

    /// How old a provider token may be: APNs accepts one for 60 minutes.
    package var providerTokenAgeMax: Duration = .seconds(60 * 60)
    /// The least time between two provider tokens on one connection: 20 minutes with APNs.
    package var providerTokenUpdateMin: Duration = .seconds(20 * 60)
    /// How far in the future `iat` may be, since clocks differ. Apple documents no value.
    package var providerTokenClockSkewMax: Duration = .seconds(60)
    /// The least time between two pushes to a device token; earlier ones are answered 429
    /// TooManyRequests. Zero switches it off. Apple publishes no rate.
    package var deviceTokenGapMin: Duration = .zero
    /// Commands to carry out in this order before the first request is read.
    package var commands: [SimulatorCommand] = []

    /// How many threads serve. Connections are dealt out to them in turn.
    package var threads = 1
    /// The most open connections. A further one is closed at once, and counted.
    package var connectionsMax = 1024
    /// The most device tokens whose topic and environment are remembered. Further tokens are
    /// accepted without being remembered, and counted.
    package var deviceTokensMax = 16_000_000
    /// How many requests are kept for `recordedRequests`, over all threads; later ones are not.
    package var recordRequests = 0

    /// Where to append one NDJSON line for each answer; nil for no log.
    package var logPath: String?
    /// The file that `run` writes at start: one `environment host:port` line for each listener,
    /// then the CA file and the control address.
    package var addressFile: String?

    package init() {}
}

/// A port that serves one environment's tokens.
package struct SimulatorListener: Hashable, Sendable {
    package var environment: PushEnvironment
    /// The port; 0 lets the system choose.
    package var port: UInt16

    package init(environment: PushEnvironment, port: UInt16 = 0) {
        self.environment = environment
        self.port = port
    }
}

/// The certificate that the simulator shows to its clients.
package enum SimulatorCertificate: Sendable {
    case pem(certificate: String, key: String)
    /// A certificate made at start for `localhost`, 127.0.0.1, ::1 and Apple's two host names. The
    /// authority's certificate, which clients must trust, is written to `caFile`.
    case generated(caFile: String?)
}

/// A key of a developer team: the public half, which the simulator knows.
package struct SimulatorKey: Sendable {
    package var teamID: String
    package var keyID: String
    /// The public key in PEM (`BEGIN PUBLIC KEY`).
    package var publicPEM: String
    package var environments: Set<PushEnvironment>
    /// nil for a team-scoped key; otherwise the bundle identifiers of a topic-specific one.
    package var bundleIDs: [String]?
    /// The one key that may share a connection with a topic-specific key.
    package var relatedKeyID: String?

    package init(
        teamID: String, keyID: String, publicPEM: String,
        environments: Set<PushEnvironment> = Set(PushEnvironment.allCases),
        bundleIDs: [String]? = nil, relatedKeyID: String? = nil
    ) {
        self.teamID = teamID
        self.keyID = keyID
        self.publicPEM = publicPEM
        self.environments = environments
        self.bundleIDs = bundleIDs
        self.relatedKeyID = relatedKeyID
    }
}

/// An app and the team that owns it.
package struct SimulatorApp: Hashable, Sendable {
    package var bundleID: String
    package var teamID: String

    package init(bundleID: String, teamID: String) {
        self.bundleID = bundleID
        self.teamID = teamID
    }
}

/// A broadcast channel of an app.
package struct SimulatorChannel: Hashable, Sendable {
    package var bundleID: String
    package var environment: PushEnvironment
    /// In base64.
    package var channelID: String
    /// Whether the latest broadcast is stored for devices that are out of reach.
    package var storesLatest: Bool

    package init(
        bundleID: String, environment: PushEnvironment, channelID: String,
        storesLatest: Bool = false
    ) {
        self.bundleID = bundleID
        self.environment = environment
        self.channelID = channelID
        self.storesLatest = storesLatest
    }
}

/// A push type that APNs may have one day.
package struct SimulatorPushType: Hashable, Sendable {
    package var name: String
    package var topicSuffix: String

    package init(name: String, topicSuffix: String) {
        self.name = name
        self.topicSuffix = topicSuffix
    }
}

/// Why a simulator did not start.
package struct SimulatorError: Error, CustomStringConvertible {
    package let description: String
}
