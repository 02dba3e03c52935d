// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// Which callers the registrar knows, and by what. Any of the three may be on at the same time; with
/// none of them nobody is let in.
package struct AccessSettings: Sendable {
    /// The file of service keys, as `ServiceKeys` reads it.
    package var serviceKeysFile: String?
    package var jwt: JWT?
    package var appAttest: AppAttest?

    package init(serviceKeysFile: String? = nil, jwt: JWT? = nil, appAttest: AppAttest? = nil) {
        self.serviceKeysFile = serviceKeysFile
        self.jwt = jwt
        self.appAttest = appAttest
    }

    /// JSON Web Tokens of somebody else's making.
    package struct JWT: Sendable {
        /// Where the keys that sign tokens are found, as a JSON Web Key Set (RFC 7517).
        package enum Keys: Sendable, Hashable {
            case file(String)
            /// `https://…`
            case url(String)
        }

        package var keys: Keys
        /// What `iss` must be.
        package var issuer: String
        /// What `aud` must be or contain.
        package var audience: String
        /// The claim with the installation that the token is for: a name, an array of names, or `*`.
        package var installationClaim = "installation"
        /// The claim with the app that the token is for, written in the same way; nil if a token is
        /// for every app.
        package var appClaim: String?
        /// The claim with what the subjects must begin with: a text or an array of texts.
        package var subjectPrefixesClaim = "subjectPrefixes"
        /// Whether a token without that claim is refused. Otherwise it is for every subject.
        package var requiresSubjectPrefixes = false
        /// How often keys are fetched from a URL again; a file is looked at every 5 seconds.
        package var refreshInterval = Duration.seconds(600)
        /// How long keys are used after they were last fetched, while no new ones can be had.
        package var keysAgeMax = Duration.seconds(86_400)
        /// PEM file of the roots to trust for the URL, instead of the system's.
        package var caFile: String?

        package init(keys: Keys, issuer: String, audience: String) {
            self.keys = keys
            self.issuer = issuer
            self.audience = audience
        }
    }

    /// Apple's App Attest.
    package struct AppAttest: Sendable {
        /// PEM file of the Apple App Attestation Root CA.
        package var rootFile: String
        /// File of one or two secrets, the first of which signs; as `AttestSecrets` reads it.
        package var secretFile: String
        /// The team (ten characters, such as `A1B2C3D4E5`) of each app, by the app's bundle
        /// identifier. Apps that are not named cannot attest themselves.
        package var teamIDs: [String: String]
        /// How long a credential lasts before the app must attest itself again.
        package var credentialLife = Duration.seconds(90 * 86_400)

        package init(rootFile: String, secretFile: String, teamIDs: [String: String]) {
            self.rootFile = rootFile
            self.secretFile = secretFile
            self.teamIDs = teamIDs
        }
    }
}

/// Why the registrar cannot start with its settings, or with a file that they name: a text for the
/// operator, which quotes no secret.
package struct AccessSettingsError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The configuration key, such as `registrar.auth.jwt.issuer`.
    package let key: String
    package let text: String

    package var description: String { "\(key): \(text)" }
}

extension AccessSettings {
    /// - Throws: what is wrong with the settings themselves; files are read later.
    func check() throws(AccessSettingsError) {
        if let jwt { try jwt.check() }
        if let appAttest { try appAttest.check() }
    }
}

extension AccessSettings.JWT {
    fileprivate func check() throws(AccessSettingsError) {
        let prefix = "registrar.auth.jwt."
        for (name, value) in [
            ("issuer", issuer), ("audience", audience), ("installationClaim", installationClaim),
            ("appClaim", appClaim ?? "-"), ("subjectPrefixesClaim", subjectPrefixesClaim),
        ] where value.isEmpty {
            throw AccessSettingsError(key: prefix + name, text: "must not be empty")
        }
        // Keys that came without TLS could be anybody's.
        if case .url(let url) = keys, !url.hasPrefix("https://") {
            throw AccessSettingsError(key: prefix + "jwksURL", text: "must begin with https://")
        }
        guard refreshInterval >= .seconds(1), keysAgeMax >= refreshInterval else {
            throw AccessSettingsError(
                key: prefix + "refreshInterval",
                text: "must be from 1 second to the keys' greatest age")
        }
    }
}

extension AccessSettings.AppAttest {
    fileprivate func check() throws(AccessSettingsError) {
        let key = "registrar.auth.appAttest.teamIDs"
        guard !teamIDs.isEmpty else {
            throw AccessSettingsError(key: key, text: "must name the team of one app at least")
        }
        for (app, team) in teamIDs {
            guard ServiceKey.isApp(app) else {
                throw AccessSettingsError(key: key, text: "names something that is not an app")
            }
            guard team.wholeMatch(of: /[A-Z0-9]{10}/) != nil else {
                throw AccessSettingsError(
                    key: key, text: "has a team for \(app) that is not ten of A-Z 0-9")
            }
        }
    }
}
