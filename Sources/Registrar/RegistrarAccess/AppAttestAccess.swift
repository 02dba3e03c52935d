// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import OpenSSL
internal import PushModel
internal import Synchronization

/// Lets in the apps that have shown by Apple's App Attest that they are what they say. What an app
/// has attested is in a credential that it keeps; all that is remembered here is the order of
/// recent requests.
final class AppAttestAccess: Sendable {
    private let settings: AccessSettings.AppAttest
    private let trust: Mutex<Trust>
    private let order = Mutex(RequestOrder(window: dateTolerance + dateTolerance))
    private let used = Mutex(UsedChallenges(life: AttestChallenge.life))

    struct Trust: Sendable {
        var roots: TrustedRoots
        var secrets: AttestSecrets
    }

    /// How far the date of a request may be from the registrar's clock.
    static let dateTolerance = Duration.seconds(300)
    /// How long before its credential's end a key's claim of the installation ends.
    static let renewalTime = Duration.seconds(600)
    /// Of the name of an app or an installation.
    static let nameBytesMax = 128
    /// SHA-256 in base64.
    private static let keyIDBytes = 44
    static let attestationBytesMax = CBOR.bytesMax * 4 / 3

    init(_ settings: AccessSettings.AppAttest, _ trust: Trust) {
        self.settings = settings
        self.trust = Mutex(trust)
    }

    func secretsChanged(to secrets: AttestSecrets) { trust.withLock { $0.secrets = secrets } }

    func rootsChanged(to roots: TrustedRoots) { trust.withLock { $0.roots = roots } }

    func challenge(
        for subject: AttestationSubject, now: WallTime
    ) throws(AccessRefusal) -> AttestationChallenge {
        guard settings.teamIDs[subject.app] != nil else { throw Self.notOffered }
        // Whole seconds, as it is signed.
        let end = WallTime(milliseconds: (now + AttestChallenge.life).seconds * 1000)
        let secrets = trust.withLock { $0.secrets }
        return AttestationChallenge(
            challenge: AttestChallenge.make(for: subject, expiresAt: end, secrets),
            expiresAt: end)
    }

    /// Whether the registrar made the challenge of this attestation, for this installation and lately: that
    /// costs little, and strangers who only pretend get no further.
    func checkChallenge(
        of request: AttestationRequest, now: WallTime
    ) throws(AccessRefusal) {
        guard settings.teamIDs[request.app] != nil else { throw Self.notOffered }
        guard request.installation.utf8.count <= Self.nameBytesMax,
            request.app.utf8.count <= Self.nameBytesMax,
            request.attestation.utf8.count <= Self.attestationBytesMax,
            // It is remembered with its challenge, which anybody may have.
            request.keyID.utf8.count <= Self.keyIDBytes
        else { throw AttestationFault.malformed.refusal }
        let secrets = trust.withLock { $0.secrets }
        guard
            AttestChallenge.isValid(
                request.challenge, for: request.subject, now: now, secrets)
        else { throw Self.challengeRefused }
    }

    func attest(
        _ request: AttestationRequest, now: WallTime
    ) throws(AccessRefusal) -> IssuedCredential {
        guard let team = settings.teamIDs[request.app] else { throw Self.notOffered }
        try checkChallenge(of: request, now: now)
        let trust = trust.withLock { $0 }
        // For one key: so that an answer that was lost can be asked for again.
        guard used.withLock({ $0.use(request.challenge, for: request.keyID, now: now) }) else {
            throw Self.challengeUsed
        }
        guard let keyID = Base64.decode(exactly: request.keyID),
            let object = Base64.decode(exactly: request.attestation)
        else { throw AttestationFault.malformed.refusal }
        let expected = AttestationVerifier.Expected(
            keyID: keyID,
            clientDataHash: SHA256Digest.of(Array(request.challenge.utf8)),
            appID: "\(team).\(request.app)", environment: request.environment)
        let key: [UInt8]
        do throws(AttestationFault) {
            key = try AttestationVerifier(roots: trust.roots).key(in: object, expected, now: now)
        } catch { throw error.refusal }
        let end = WallTime(milliseconds: (now + settings.credentialLife).seconds * 1000)
        let credential = AttestCredential(
            app: request.app, environment: request.environment,
            installation: request.installation, key: key, expiresAt: end)
        return IssuedCredential(
            credential: Secret(credential.text(trust.secrets)), expiresAt: end,
            caller: credential.caller, attestedKey: Base64.encode(credential.keyID),
            claimEnds: end + (.zero - Self.renewalTime))
    }

    /// Checks all of an assertion for which the head of its request suffices.
    func presented(
        _ parameters: AppAttestParameters, with request: AccessRequest, now: WallTime
    ) throws(AccessRefusal) -> PresentedAssertion {
        let secrets = trust.withLock { $0.secrets }
        guard let credential = AttestCredential(parameters.credential, secrets) else {
            throw Self.credentialRefused("The registrar has not issued this credential.")
        }
        guard now < credential.expiresAt else {
            throw Self.credentialRefused("The credential has expired.")
        }
        guard let team = settings.teamIDs[credential.app] else { throw Self.notOffered }
        try Self.checkScope(credential, request)
        guard let date = WallTime(rfc3339: parameters.date),
            (now - date).magnitude <= Self.dateTolerance
        else { throw AssertionFault.date.refusal }
        guard let bytes = Base64.decode(exactly: parameters.assertion),
            let assertion = Assertion(bytes)
        else { throw AssertionFault.malformed.refusal }
        return PresentedAssertion(
            credential: credential, team: team, assertion: assertion, date: parameters.date)
    }

    /// Checks the rest, with the request's body.
    func caller(
        of presented: PresentedAssertion, _ request: AccessRequest, body: [UInt8], now: WallTime
    ) throws(AccessRefusal) -> Caller {
        let credential = presented.credential
        let hash = Assertion.clientDataHash(
            method: request.method, target: request.target, date: presented.date, body: body)
        do throws(AssertionFault) {
            try presented.assertion.verify(
                key: credential.key, clientDataHash: hash,
                appID: "\(presented.team).\(credential.app)")
            try checkOrder(credential, request, presented.assertion.counter, now)
        } catch { throw error.refusal }
        return credential.caller
    }

    private static func checkScope(
        _ credential: AttestCredential, _ request: AccessRequest
    ) throws(AccessRefusal) {
        guard credential.app == request.app, credential.environment == request.environment else {
            throw .app("Attest the key under the app and environment that the request names.")
        }
        guard let installation = request.installation else {
            throw .installation(
                "A request about several installations is not for an app.",
                remedy: "Send a request for each path of the app's own installation.")
        }
        guard credential.installation == installation else {
            throw .installation(
                "The credential is for another installation.",
                remedy: "Attest a key under the installation that the request names.")
        }
    }

    /// What changes nothing may come in any order.
    private func checkOrder(
        _ credential: AttestCredential, _ request: AccessRequest, _ counter: UInt32, _ now: WallTime
    ) throws(AssertionFault) {
        guard request.method != "GET", request.method != "HEAD" else { return }
        // What comes before is the same for all requests of a credential.
        let marker = "/installations/\(credential.installation)"
        let path = request.resource.ranges(of: marker).first
            .map { request.resource[$0.upperBound...] }
        let isInOrder = order.withLock {
            $0.accepts(
                keyID: credential.keyID, path: String(path ?? request.resource[...]),
                counter: counter, now: now)
        }
        guard isInOrder else { throw .replayed }
    }

    static let notOffered = AccessRefusal(
        .attestationNotOffered, "The registrar does not accept App Attest for this app.",
        remedy: "Have its operator add the app's team to registrar.auth.appAttest.teamIDs.")

    private static let challengeRefused = AccessRefusal(
        .challengeRefused,
        "The challenge is not one of the registrar for this installation, or is older than 5 minutes.",
        remedy: "Get a new challenge, and attest a new key with it.")

    private static let challengeUsed = AccessRefusal(
        .challengeRefused, "The challenge has been used.",
        remedy: "Get a new challenge, and attest a new key with it.")

    private static func credentialRefused(_ detail: String) -> AccessRefusal {
        AccessRefusal(
            .credentialRefused, detail, remedy: "Make a new key and attest it, then try again.")
    }
}

extension Duration {
    fileprivate var magnitude: Duration { self < .zero ? .zero - self : self }
}

/// An assertion of which all is in order that the head of its request shows.
struct PresentedAssertion: Sendable {
    let credential: AttestCredential
    let team: String
    let assertion: Assertion
    /// As it was sent.
    let date: String

    var callerID: String { credential.caller.id }
}

extension AttestCredential {
    var caller: Caller {
        Caller(
            id: "appAttest:\(Hexadecimal.encode(keyID.prefix(8)))",
            rights: Rights(
                apps: .some([app]), environment: environment, installations: .some([installation]),
                sequencesFollowClock: true))
    }
}
