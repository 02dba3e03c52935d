// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import HTTPListener
internal import LinuxIO
internal import Logging
internal import PushModel
internal import RegistrarAccess
internal import RegistrarRules

/// Asks the access control who makes a request, in the terms of HTTP.
struct AccessCheck: Sendable {
    let access: AccessControl

    /// What a request's head shows of its caller.
    /// - Parameter resource: the path in the one form that what it names has.
    func admission(
        of http: HTTPRequest, _ scope: Scope, resource: String
    ) throws(Problem) -> AccessAdmission {
        var request = AccessRequest(
            method: http.method.rawValue, path: http.path,
            authorization: http.headers.values("authorization"), body: [],
            app: scope.app, environment: scope.environment, installation: scope.installation)
        request.query = http.rawQuery
        request.resource = resource
        return try access.admission(of: request, now: Self.now()).orProblem()
    }

    /// What a path is about.
    struct Scope {
        var environment: PushEnvironment
        var app: String
        /// nil for several.
        var installation: String?
    }

    func caller(
        of admission: AccessAdmission, body: [UInt8]
    ) throws(Problem) -> RegistrarCaller {
        RegistrarCaller(
            try access.caller(of: admission, body: body, now: Self.now()).orProblem())
    }

    func challenge(_ key: InstallationKey) throws(Problem) -> RegistrarReply {
        let subject = AttestationSubject(
            app: key.app, environment: key.environment, installation: key.installation)
        let challenge = try access.challenge(for: subject, now: Self.now()).orProblem()
        return RegistrarReply(
            .object([
                ("challenge", .string(challenge.challenge)),
                ("expiresAt", .string(challenge.expiresAt.rfc3339)),
            ]))
    }

    /// Refuses an attestation whose challenge is none, which costs little.
    func checkChallenge(of body: AttestationBody, _ key: InstallationKey) throws(Problem) {
        try access.checkChallenge(of: request(body, key), now: Self.now()).orProblem()
    }

    func attest(
        _ body: AttestationBody, _ key: InstallationKey
    ) throws(Problem) -> IssuedCredential {
        try access.attest(request(body, key), now: Self.now()).orProblem()
    }

    private func request(_ body: AttestationBody, _ key: InstallationKey) -> AttestationRequest {
        AttestationRequest(
            app: key.app, environment: key.environment, installation: key.installation,
            keyID: body.keyID, attestation: body.attestation, challenge: body.challenge)
    }

    static func now() -> WallTime {
        WallTime(milliseconds: SystemClock.wallNanoseconds() / 1_000_000)
    }
}

/// Somebody who has shown who they are.
struct RegistrarCaller: Sendable {
    let id: String
    /// nil for another replica, which has checked the caller.
    private let caller: Caller?

    init(_ caller: Caller) {
        id = caller.id
        self.caller = caller
    }

    /// The caller of a request that another replica has passed on, and has checked.
    init(_ passed: PeerSeal.Passed) {
        id = passed.caller
        caller = nil
    }

    var isReplica: Bool { caller == nil }

    func allows(_ key: InstallationKey) -> Bool {
        caller?.allows(
            app: key.app, environment: key.environment, installation: key.installation) ?? true
    }

    /// - Parameter subject: empty for a target without subjects.
    func allows(subject: String) -> Bool { caller?.allows(subject: subject.utf8) ?? true }

    func allows(sequence: Int64) -> Bool {
        caller?.allows(sequence: sequence, now: AccessCheck.now()) ?? true
    }
}

extension Result where Failure == AccessRefusal {
    fileprivate func orProblem() throws(Problem) -> Success {
        switch self {
        case .success(let value): return value
        case .failure(let refusal): throw Problem(refusal)
        }
    }
}

extension Problem {
    init(_ refusal: AccessRefusal) {
        self.init(
            Name(status: refusal.status) ?? .forbidden, refusal.detail, remedy: refusal.remedy)
        type = refusal.problem.rawValue
        challenge = refusal.wwwAuthenticate
        if refusal.status == 503 { retryAfterSeconds = 5 }
    }
}
