// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// Everything that a simulator is started with. The defaults serve production on a free port of
/// the loopback interface, with a certificate made at start, and know no team and no app.
package struct SimulatorOptions: Sendable {
    /// Where it listens, one entry an environment.
    package var listeners: [SimulatorListener] = [SimulatorListener(environment: .production)]
    /// The numeric address it binds to.
    package var address = "127.0.0.1"
    package var certificate: SimulatorCertificate = .generated(caFile: nil)

    /// The keys whose provider tokens are accepted.
    package var keys: [SimulatorKey] = []
    /// The apps that may be pushed to.
    package var apps: [SimulatorApp] = []

    /// SETTINGS_MAX_CONCURRENT_STREAMS from the first valid provider token on; 1 before it, as
    /// APNs does. 1000 is what was seen of APNs in 2020 and 2021.
    package var streamLimit = 1000
    /// Added to each answer: the answer is decided, and logged, when the request has arrived.
    package var delay: AnswerDelay = .zero
    /// Scripted answers for requests that are valid otherwise; the first that applies wins.
    package var rules: [ScriptedRule] = []

    /// APNs: a provider token is accepted for 60 minutes.
    package var providerTokenAgeMax: Duration = .seconds(60 * 60)
    /// APNs: at least 20 minutes between two provider tokens on one connection.
    package var providerTokenUpdateMin: Duration = .seconds(20 * 60)
    /// How far in the future `iat` may lie: clocks differ. Ours; Apple documents none.
    package var providerTokenClockSkewMax: Duration = .seconds(60)
    /// A token that is pushed to again within this time is answered 429 TooManyRequests; zero
    /// switches it off. Apple publishes no rate.
    package var deviceTokenGapMin: Duration = .zero
    /// Carried out in this order before the first request is read.
    package var commands: [SimulatorCommand] = []

    /// Threads that serve; connections are dealt out to them in turn.
    package var threads = 1
    /// Open connections; one more is closed as soon as it is accepted, and counted.
    package var connectionsMax = 1024
    /// Device tokens whose topic and environment are remembered: 16 bytes each at twice the room.
    /// Tokens beyond are accepted unremembered, and counted.
    package var deviceTokensMax = 16_000_000
    /// Requests kept whole for `recordedRequests`, over all threads; later ones are not kept.
    package var recordRequests = 0

    /// Where to append one NDJSON line for each answer; nil for no log.
    package var logPath: String?
    /// Written at start by `run`: one `environment host:port` line a listener, then the CA file.
    package var addressFile: String?

    package init() {}
}

/// A port that serves one environment's tokens.
package struct SimulatorListener: Hashable, Sendable {
    package var environment: PushEnvironment
    /// 0 lets the system choose.
    package var port: UInt16

    package init(environment: PushEnvironment, port: UInt16 = 0) {
        self.environment = environment
        self.port = port
    }
}

/// What the simulator shows to its clients.
package enum SimulatorCertificate: Sendable {
    case pem(certificate: String, key: String)
    /// Made at start for `localhost`, 127.0.0.1, ::1 and Apple's two host names; the authority's
    /// certificate goes to `caFile`, for the client to trust.
    case generated(caFile: String?)
}

/// A key of a developer team, as the simulator knows it: the public half.
package struct SimulatorKey: Sendable {
    package var teamID: String
    package var keyID: String
    /// `BEGIN PUBLIC KEY`.
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

/// Why a simulator did not start.
package struct SimulatorError: Error, CustomStringConvertible {
    package let description: String
}
