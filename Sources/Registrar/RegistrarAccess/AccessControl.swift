// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import LinuxIO
internal import OpenSSL
package import PushModel
internal import Synchronization

/// Decides who makes a request, and whether they may. Any thread may ask, an event loop too: nothing
/// here waits for a file or a network. What is configured with is looked at again by a thread that
/// `start` makes.
package final class AccessControl: Sendable {
    private let schemes: [AccessScheme]
    private let serviceKeys: Mutex<ServiceKeys?>
    private let tokens: TokenVerifier?
    private let appAttest: AppAttestAccess?
    private let watch: Mutex<AccessWatch>
    private let tally = Mutex(AccessCounts())
    private let notice: @Sendable (AccessNotice) -> Void
    private let isStopped = Atomic(false)

    /// Reads the files. Keys behind a URL are fetched by the first `refresh`.
    /// - Parameter notice: is told what changes; on the thread that refreshes.
    package convenience init(
        _ settings: AccessSettings, notice: @escaping @Sendable (AccessNotice) -> Void
    ) throws(AccessSettingsError) {
        try self.init(settings, fetch: nil, notice: notice)
    }

    /// - Parameter fetch: gets the JSON Web Key Set instead of the file or URL.
    init(
        _ settings: AccessSettings, fetch: (@Sendable () -> Result<[UInt8], FileFault>)?,
        notice: @escaping @Sendable (AccessNotice) -> Void
    ) throws(AccessSettingsError) {
        try settings.check()
        var watch = AccessWatch(settings, fetch: fetch)
        let first = try watch.first()
        assert(
            (first.serviceKeys != nil) == (settings.serviceKeysFile != nil),
            "there are service keys exactly where a file of them is configured")
        assert(
            (first.trust != nil) == (settings.appAttest != nil),
            "there are roots and secrets exactly where App Attest is configured")
        serviceKeys = Mutex(first.serviceKeys)
        tokens = settings.jwt.map { TokenVerifier($0) }
        appAttest =
            if let settings = settings.appAttest, let trust = first.trust {
                AppAttestAccess(settings, trust)
            } else { nil }
        var schemes: [AccessScheme] = []
        if first.serviceKeys != nil || tokens != nil { schemes.append(.bearer) }
        if appAttest != nil { schemes.append(.appAttest) }
        self.schemes = schemes
        self.watch = Mutex(watch)
        self.notice = notice
        if case .file? = settings.jwt?.keys { try loadTokenKeys() }
    }

    /// What the head of a request shows of its caller, before its body is read. A request that they may
    /// not make is refused, as far as its path tells; of what its body names, the caller is asked later.
    package func admission(
        of head: AccessRequest, now: WallTime
    ) -> Result<AccessAdmission, AccessRefusal> {
        do throws(AccessRefusal) {
            let finding = try identified(head, now)
            if case .caller(let caller, _) = finding { try Self.check(caller, head) }
            return .success(AccessAdmission(finding: finding, request: head))
        } catch { return .failure(refused(error)) }
    }

    /// Who makes the request whose head was admitted and whose body is this.
    package func caller(
        of admission: AccessAdmission, body: [UInt8], now: WallTime
    ) -> Result<Caller, AccessRefusal> {
        do throws(AccessRefusal) {
            let (caller, scheme): (Caller, AccessCounts.Scheme)
            switch admission.finding {
            case .caller(let known, let way): (caller, scheme) = (known, way)
            case .assertion(let presented):
                guard let appAttest else { throw Self.schemeNotOffered }
                caller = try appAttest.caller(
                    of: presented, admission.request, body: body, now: now)
                scheme = .appAttest
                try Self.check(caller, admission.request)
            }
            tally.withLock { $0.accepted[scheme, default: 0] += 1 }
            return .success(caller)
        } catch { return .failure(refused(error)) }
    }

    /// Who makes a request that is there as a whole.
    package func caller(of request: AccessRequest, now: WallTime) -> Result<Caller, AccessRefusal> {
        admission(of: request, now: now).flatMap { caller(of: $0, body: request.body, now: now) }
    }

    /// A challenge for an installation whose app is about to attest a key.
    package func challenge(
        for subject: AttestationSubject, now: WallTime
    ) -> Result<AttestationChallenge, AccessRefusal> {
        do throws(AccessRefusal) {
            guard let appAttest else { throw AppAttestAccess.notOffered }
            return .success(try appAttest.challenge(for: subject, now: now))
        } catch { return .failure(refused(error)) }
    }

    /// Whether an attestation is for a challenge of this registrar; it costs little to find out.
    package func checkChallenge(
        of request: AttestationRequest, now: WallTime
    ) -> Result<Void, AccessRefusal> {
        do throws(AccessRefusal) {
            guard let appAttest else { throw AppAttestAccess.notOffered }
            return .success(try appAttest.checkChallenge(of: request, now: now))
        } catch { return .failure(refused(error)) }
    }

    /// Verifies an attestation, and issues a credential for its key. Takes about a millisecond.
    package func attest(
        _ request: AttestationRequest, now: WallTime
    ) -> Result<IssuedCredential, AccessRefusal> {
        do throws(AccessRefusal) {
            guard let appAttest else { throw AppAttestAccess.notOffered }
            let issued = try appAttest.attest(request, now: now)
            tally.withLock { $0.attested += 1 }
            return .success(issued)
        } catch { return .failure(refused(error)) }
    }

    package var counts: AccessCounts { tally.withLock { $0 } }

    private func refused(_ refusal: AccessRefusal) -> AccessRefusal {
        tally.withLock { $0.refused[refusal.problem, default: 0] += 1 }
        guard refusal.status == 401 else { return refusal }
        var refusal = refusal
        // Someone who has no service key or token may have an attested app, and the reverse.
        let offered = schemes.map { $0.challenge(refusal.problem) }
        refusal.wwwAuthenticate = offered.joined(separator: ", ")
        return refusal
    }

    private func identified(
        _ request: AccessRequest, _ now: WallTime
    ) throws(AccessRefusal) -> AccessAdmission.Finding {
        guard let value = request.authorization.first else { throw Self.credentialsRequired }
        guard request.authorization.count == 1, let header = AuthorizationHeader(value) else {
            throw Self.credentialsMalformed
        }
        switch header {
        case .bearer(let key) where key.hasPrefix(ServiceKeys.prefix):
            guard let keys = serviceKeys.withLock({ $0 }) else { throw Self.schemeNotOffered }
            guard let caller = keys.caller(with: key) else { throw Self.serviceKeyUnknown }
            return .caller(caller, .service)
        case .bearer(let token):
            guard let tokens else { throw Self.schemeNotOffered }
            return .caller(try tokens.caller(with: token, now: now).get(), .jwt)
        case .appAttest(let parameters):
            guard let appAttest else { throw Self.schemeNotOffered }
            return .assertion(try appAttest.presented(parameters, with: request, now: now))
        case .other: throw Self.schemeNotOffered
        }
    }

    private static func check(
        _ caller: Caller, _ request: AccessRequest
    ) throws(AccessRefusal) {
        guard caller.allows(app: request.app, environment: request.environment) else {
            throw .app("Use credentials that name the app of the request's path.")
        }
        guard let installation = request.installation else { return }
        guard
            caller.allows(
                app: request.app, environment: request.environment, installation: installation)
        else {
            throw .installation(
                "The token is for another installation.",
                remedy: "Send a token whose installation claim names the one in the path.")
        }
    }

    // MARK: Looking at files and keys again

    /// Looks at whatever it is time to look at again. Blocks for as long as a file or a key set
    /// takes, at most some 11 seconds.
    package func refresh(now: WallTime) {
        let unknownKeySeen = tokens?.takeUnknownKey() ?? false
        let changes = watch.withLock { $0.look(unknownKeySeen: unknownKeySeen, now: now) }
        for change in changes { apply(change, now) }
    }

    private func apply(_ change: AccessWatch.Change, _ now: WallTime) {
        switch change {
        case .serviceKeys(let keys): serviceKeys.withLock { $0 = keys }
        case .roots(let roots): appAttest?.rootsChanged(to: roots)
        case .secrets(let secrets): appAttest?.secretsChanged(to: secrets)
        case .tokenKeys(let keys): tokens?.keysChanged(to: keys, at: now)
        case .sameTokenKeys: tokens?.keysConfirmed(at: now)
        case .fault(let fault):
            tally.withLock { $0.faults += 1 }
            if let fault { notice(fault) }
        case .notice(let text): notice(text)
        }
    }

    private func loadTokenKeys() throws(AccessSettingsError) {
        let now = WallTime(milliseconds: SystemClock.wallNanoseconds() / 1_000_000)
        for change in watch.withLock({ $0.look(unknownKeySeen: false, now: now) }) {
            if case .fault(let fault?) = change {
                throw AccessSettingsError(key: "registrar.auth.jwt.jwksFile", text: fault.text)
            }
            apply(change, now)
        }
    }

    /// Starts the thread that refreshes, each second, until `stop`.
    package func start() throws(SystemError) {
        try NamedThread.detach(name: "registrar-keys") { [self] in
            while !isStopped.load(ordering: .relaxed) {
                refresh(now: WallTime(milliseconds: SystemClock.wallNanoseconds() / 1_000_000))
                NamedThread.sleep(.seconds(1))
            }
        }
    }

    /// The thread ends within a second, or when the key set that it is fetching has come.
    package func stop() { isStopped.store(true, ordering: .relaxed) }

    // MARK: Refusals

    private static let credentialsRequired = AccessRefusal(
        .credentialsRequired, "The request has no authorization header.",
        remedy: "Send a service key, a token or an App Attest assertion.")

    private static let credentialsMalformed = AccessRefusal(
        .credentialsMalformed, "The authorization header is malformed, or there are several.",
        remedy: "Send one header: Bearer and a key or token, or AppAttest and its parameters.")

    private static let schemeNotOffered = AccessRefusal(
        .schemeNotOffered, "The registrar does not accept credentials of this kind.",
        remedy: "Send credentials of a kind that the header www-authenticate names.")

    private static let serviceKeyUnknown = AccessRefusal(
        .serviceKeyUnknown, "The registrar does not know this service key.",
        remedy: "Have the registrar's operator make one: lamplighter registrar-key create.")
}
