// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import HTTPListener
internal import LinuxIO
internal import Logging
internal import PushModel
internal import Registering
internal import RegistrarAccess

/// Asks the access control who makes a request, in the terms of HTTP.
struct AccessCheck: Sendable {
    let access: AccessControl

    func caller(
        of question: HTTPQuestion, _ environment: PushEnvironment, app: String,
        installation: String?
    ) throws(Problem) -> RegistrarCaller {
        let request = AccessRequest(
            method: question.method.rawValue, path: question.path,
            authorization: question.headers.values("authorization"), body: question.body,
            app: app, environment: environment, installation: installation)
        switch access.caller(of: request, now: Self.now()) {
        case .success(let caller): return RegistrarCaller(caller)
        case .failure(let refusal): throw Problem(refusal)
        }
    }

    func challenge(
        _ environment: PushEnvironment, app: String
    ) throws(Problem) -> RegistrarReply {
        switch access.challenge(app: app, environment: environment, now: Self.now()) {
        case .success(let challenge):
            return RegistrarReply(
                .object([
                    ("challenge", .string(challenge.challenge)),
                    ("expiresAt", .string(challenge.expiresAt.rfc3339)),
                ]))
        case .failure(let refusal): throw Problem(refusal)
        }
    }

    func attest(_ body: AttestationBody, _ key: InstallationKey) throws(Problem) -> RegistrarReply {
        let request = AttestationRequest(
            app: key.app, environment: key.environment, installation: key.installation,
            keyID: body.keyID, attestation: body.attestation, challenge: body.challenge)
        switch access.attest(request, now: Self.now()) {
        case .success(let issued):
            return RegistrarReply(
                .object([
                    ("credential", .string(issued.credential.text)),
                    ("expiresAt", .string(issued.expiresAt.rfc3339)),
                ]))
        case .failure(let refusal): throw Problem(refusal)
        }
    }

    private static func now() -> WallTime {
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

    private init() {
        id = "registrar"
        caller = nil
    }

    static let replica = RegistrarCaller()

    func allows(_ key: InstallationKey) -> Bool {
        caller?.allows(
            app: key.app, environment: key.environment, installation: key.installation) ?? true
    }

    /// - Parameter subject: empty for a target without subjects.
    func allows(subject: String) -> Bool { caller?.allows(subject: subject.utf8) ?? true }
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
