// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import HTTPListener
package import KafkaLog
internal import PushModel

extension Configuration {
    /// What `lamplighter registrar` serves, and to whom. A worker reads none of it.
    package struct Registrar: Sendable {
        package var host = "127.0.0.1"
        package var port: Int?
        /// nil for the workers' group with `-registrar` after it.
        package var group: String?
        package var advertisedURL: String?
        package var peerTokenFile: String?
        package var caFile: String?
        package var requestTimeout = Duration.seconds(10)
        package var requestsPerSecond = 2000
        package var requestsPerSecondOfInstallation = 5
        package var trustedProxies: [AddressRange] = []
        package var tls = TLS()
        package var auth = Auth()

        package struct TLS: Sendable {
            package var certificateFile: String?
            package var keyFile: String?
        }

        /// Who may register what. At least one of the three must be configured.
        package struct Auth: Sendable {
            package var serviceKeysFile: String?
            package var jwt = JWT()
            package var appAttest = AppAttest()
        }

        package struct JWT: Sendable {
            package var jwksFile: String?
            package var jwksURL: String?
            package var issuer: String?
            package var audience: String?
            package var installationClaim = "installation"
            package var appClaim: String?
            package var subjectPrefixesClaim = "subjectPrefixes"
            package var requiresSubjectPrefixes = false
            package var refreshInterval = Duration.seconds(600)
            package var caFile: String?

            var isConfigured: Bool { jwksFile != nil || jwksURL != nil }
        }

        package struct AppAttest: Sendable {
            package var rootFile: String?
            package var secretFile: String?
            /// The team of each app.
            package var teamIDs: [String: String] = [:]

            var isConfigured: Bool { rootFile != nil || secretFile != nil || !teamIDs.isEmpty }
        }
    }

    /// What a program needs of the configuration.
    package enum Purpose: Sendable {
        case worker
        /// It signs no pushes: `apns` may be missing, and the files of its keys are not looked for.
        case registrar
    }

    /// The name of the registrars' consumer group.
    package var registrarGroup: String { registrar.group ?? "\(kafka.group)-registrar" }

    /// The settings of the registrar's Kafka clients.
    package var registrarClientSettings: KafkaClientSettings {
        var properties = kafka.properties
        properties["client.id"] = Secret("\(kafka.clientID)-registrar")
        if properties["linger.ms"] == nil, properties["queue.buffering.max.ms"] == nil {
            properties["linger.ms"] = Secret("1")
        }
        var settings = KafkaClientSettings(
            bootstrap: kafka.bootstrap, group: registrarGroup, properties: properties)
        settings.boundsWaitsBySession = true
        return settings
    }

    func checkRegistrar(_ reader: inout SettingReader) {
        let isSound = reader.isSound(["registrar"])
        func report(_ path: [String], wrong: String, remedy: String) {
            guard isSound else { return }
            reader.report(["registrar"] + path, wrong: wrong, remedy: remedy)
        }
        checkRegistrarFiles(&reader)
        if registrar.port == nil {
            report(["port"], wrong: "is missing", remedy: "choose one, such as 8443")
        }
        if registrarGroup == kafka.group {
            report(
                ["group"], wrong: "is \(registrarGroup), as is kafka.group",
                remedy: "leave it out, or give the registrars a group of their own")
        }
        if (registrar.tls.certificateFile == nil) != (registrar.tls.keyFile == nil) {
            report(
                ["tls"], wrong: "has one of certificateFile and keyFile",
                remedy: "name both, or leave out both")
        }
        if (registrar.advertisedURL == nil) != (registrar.peerTokenFile == nil) {
            report(
                ["peerTokenFile"],
                wrong: registrar.peerTokenFile == nil
                    ? "is missing, and other replicas are to reach advertisedURL"
                    : "is set without registrar.advertisedURL",
                remedy: "set both where there are several replicas "
                    + "(\(Configuration.Admin.tokenRemedy)), or leave out both")
        }
        let auth = registrar.auth
        if auth.serviceKeysFile == nil, !auth.jwt.isConfigured, !auth.appAttest.isConfigured {
            report(
                ["auth"], wrong: "names nobody who may register",
                remedy: "set auth.serviceKeysFile (`lamplighter registrar-key create` makes a "
                    + "key), auth.jwt or auth.appAttest; docs/registrar.md says which to choose")
        }
        if auth.jwt.isConfigured {
            if auth.jwt.jwksFile != nil, auth.jwt.jwksURL != nil {
                report(
                    ["auth", "jwt"], wrong: "has both jwksFile and jwksURL",
                    remedy: "keep one of them")
            }
            for (name, value) in [
                ("issuer", auth.jwt.issuer), ("audience", auth.jwt.audience),
            ] where value == nil {
                report(
                    ["auth", "jwt", name], wrong: "is missing",
                    remedy: "write what the tokens say; without it any other's tokens would do")
            }
        }
        if auth.appAttest.isConfigured {
            for (name, isMissing) in [
                ("rootFile", auth.appAttest.rootFile == nil),
                ("secretFile", auth.appAttest.secretFile == nil),
                ("teamIDs", auth.appAttest.teamIDs.isEmpty),
            ] where isMissing {
                report(
                    ["auth", "appAttest", name], wrong: "is missing",
                    remedy: "App Attest needs it; see docs/registrar.md")
            }
        }
    }

    private func checkRegistrarFiles(_ reader: inout SettingReader) {
        let auth = registrar.auth
        // Whoever may replace one decides who may register what, whether it holds a secret or not.
        let files: [([String], String?)] = [
            (["caFile"], registrar.caFile),
            (["peerTokenFile"], registrar.peerTokenFile),
            (["tls", "certificateFile"], registrar.tls.certificateFile),
            (["tls", "keyFile"], registrar.tls.keyFile),
            (["auth", "serviceKeysFile"], auth.serviceKeysFile),
            (["auth", "jwt", "jwksFile"], auth.jwt.jwksFile),
            (["auth", "jwt", "caFile"], auth.jwt.caFile),
            (["auth", "appAttest", "rootFile"], auth.appAttest.rootFile),
            (["auth", "appAttest", "secretFile"], auth.appAttest.secretFile),
        ]
        for (path, file) in files {
            guard let file, let complaint = Self.complaint(of: file, isSecret: true) else {
                continue
            }
            reader.report(
                ["registrar"] + path, wrong: complaint.wrong, remedy: complaint.remedy)
        }
    }

    mutating func resolveRegistrarPaths(_ resolve: (inout String?) -> Void) {
        resolve(&registrar.caFile)
        resolve(&registrar.peerTokenFile)
        resolve(&registrar.tls.certificateFile)
        resolve(&registrar.tls.keyFile)
        resolve(&registrar.auth.serviceKeysFile)
        resolve(&registrar.auth.jwt.jwksFile)
        resolve(&registrar.auth.jwt.caFile)
        resolve(&registrar.auth.appAttest.rootFile)
        resolve(&registrar.auth.appAttest.secretFile)
    }
}

// MARK: Keys

extension Configuration.Registrar {
    static var keys: [ConfigurationKey<Self>] {
        [
            .value(
                "host", \.host, .text("a host name or an address", matching: #"[^\s/]{1,255}"#),
                "The address to listen on; in a container `0.0.0.0` or `::`."),
            .optional(
                "port", \.port, .integer(0...65_535),
                "Required by `lamplighter registrar`. 0 lets the system choose, and the log says "
                    + "what."),
            .optional(
                "group", \.group,
                .text("1 to 255 characters", matching: #"[^\x00-\x1F]{1,255}"#),
                "The consumer group of the registrars; `kafka.group` with `-registrar` after it if "
                    + "left out."),
            .optional(
                "advertisedURL", \.advertisedURL,
                .text(
                    "a URL such as https://registrar-0.registrar:8443",
                    matching: #"https?://[A-Za-z0-9._\-\[\]:]+"#),
                "Where the other replicas reach this one. Needed with more than one: a request is "
                    + "passed on to the replica that owns it."),
            .optional(
                "peerTokenFile", \.peerTokenFile, .file,
                "A file with the token that the replicas know each other by; the same in all. Needed "
                    + "with `advertisedURL`."),
            .optional(
                "caFile", \.caFile, .file,
                "PEM file of the roots that other replicas' certificates are checked against; the "
                    + "system's if left out."),
            .value(
                "requestTimeout", \.requestTimeout, .duration(.seconds(1) ... .seconds(60)),
                "How long a write may wait for Kafka before the caller is told to try again."),
            .value(
                "requestsPerSecond", \.requestsPerSecond, .integer(1...1_000_000),
                "Requests of one caller that each replica answers in a second, after twice as many "
                    + "at once; each item of a batch counts."),
            .value(
                "requestsPerSecondOfInstallation", \.requestsPerSecondOfInstallation,
                .integer(1...10_000),
                "The same for one installation, after ten times as many at once."),
            .value(
                "trustedProxies", \.trustedProxies, .list(of: .addressRange, countMax: 64),
                "The load balancers and proxies in front of the registrar: of what comes from these "
                    + "addresses, the client is the last one in X-Forwarded-For that is none of them."
            ),
            .section(
                "tls", \.tls, TLS.keys,
                "TLS of the listener; without it, it speaks plain HTTP, as behind a proxy."),
            .section("auth", \.auth, Auth.keys, "Who may register what: docs/registrar.md."),
        ]
    }
}

extension Configuration.Registrar.TLS {
    static var keys: [ConfigurationKey<Self>] {
        [
            .optional(
                "certificateFile", \.certificateFile, .file,
                "PEM file of the certificate and those that it was issued by."),
            .optional("keyFile", \.keyFile, .file, "PEM file of its private key."),
        ]
    }
}

extension Configuration.Registrar.Auth {
    static var keys: [ConfigurationKey<Self>] {
        [
            .optional(
                "serviceKeysFile", \.serviceKeysFile, .file,
                "The hashed keys of backends, one a line, made by `lamplighter registrar-key "
                    + "create`. Read again when it changes."),
            .section(
                "jwt", \.jwt, Configuration.Registrar.JWT.keys,
                "Signed tokens (JWT) that the app's own backend issues."),
            .section(
                "appAttest", \.appAttest, Configuration.Registrar.AppAttest.keys,
                "Apple's App Attest, for an app without a backend of its own."),
        ]
    }
}

extension Configuration.Registrar.JWT {
    static var keys: [ConfigurationKey<Self>] {
        let claim = SettingType<String>.text("a claim's name", matching: #"[\x21-\x7E]{1,128}"#)
        let text = SettingType<String>.text(
            "1 to 512 printable characters", matching: #"[\x21-\x7E]{1,512}"#)
        return [
            .optional("jwksFile", \.jwksFile, .file, "The issuer's public keys, as a JWK set."),
            .optional(
                "jwksURL", \.jwksURL,
                .text("an https:// URL", matching: #"https://[\x21-\x7E]{1,1024}"#),
                "Where the issuer publishes them."),
            .optional("issuer", \.issuer, text, "What `iss` must be."),
            .optional("audience", \.audience, text, "What `aud` must be, or contain."),
            .value(
                "installationClaim", \.installationClaim, claim,
                "The claim that names the one installation that may be written."),
            .optional("appClaim", \.appClaim, claim, "The claim that names the one app."),
            .value(
                "subjectPrefixesClaim", \.subjectPrefixesClaim, claim,
                "The claim that limits subjects: a prefix, or an array of them."),
            .value(
                "requiresSubjectPrefixes", \.requiresSubjectPrefixes, .flag,
                "Whether a token without that claim may register no subject at all."),
            .value(
                "refreshInterval", \.refreshInterval, .duration(.seconds(30) ... .seconds(86_400)),
                "How often the keys are fetched again."),
            .optional(
                "caFile", \.caFile, .file,
                "PEM file of the roots for `jwksURL` instead of the system's."),
        ]
    }
}

extension Configuration.Registrar.AppAttest {
    static var keys: [ConfigurationKey<Self>] {
        [
            .optional(
                "rootFile", \.rootFile, .file, "PEM file of Apple's App Attestation Root CA."),
            .optional(
                "secretFile", \.secretFile, .file,
                "The secret that the registrars sign their credentials with; the same in all."),
            .map(
                "teamIDs", \.teamIDs,
                names: NameRule(
                    placeholder: "<app>", notation: "a bundle identifier",
                    pattern: "[A-Za-z0-9._~-]{1,128}", variableSeparator: ".", countMax: 1000),
                to: .text("a team ID of 10 characters", matching: "[A-Z0-9]{10}"),
                showing: { $1 }, "The team ID of each app that may register by App Attest."),
        ]
    }
}
