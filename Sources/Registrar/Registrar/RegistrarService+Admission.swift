// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import HTTPListener
internal import PushModel
internal import RegistrarAccess
internal import RegistrarRules

/// What the head of a request has shown: what it is about, and who asks.
struct RequestAdmission: Sendable {
    enum Asker: Sendable {
        /// Anybody may ask for this.
        case anybody
        case caller(AccessAdmission)
        /// Another replica, for its caller.
        case replica(PeerSeal.Passed)
    }

    let route: RegistrarRoute
    let asker: Asker

    var isDevice: Bool {
        if case .caller(let admission) = asker { admission.isOfDevice } else { false }
    }

    var isReplica: Bool { if case .replica = asker { true } else { false } }

    /// Who pays for the memory that the request takes; empty for somebody who has not shown it.
    var payer: String {
        switch asker {
        case .anybody: ""
        case .caller(let admission): admission.callerID
        case .replica(let passed): "registrar for \(passed.caller)"
        }
    }
}

extension RegistrarService {
    /// Decides on a request by its head, on the listener's thread.
    func admit(_ http: HTTPRequest) -> HTTPAdmission {
        switch admission(of: http) {
        case .success(let admission):
            return .admitted(
                HTTPAdmitted(
                    caller: admission.payer, isReplica: admission.isReplica,
                    isDevice: admission.isDevice,
                    bodyBytesMax: bodyBytesMax(admission),
                    finding: admission))
        case .failure(let refusal):
            return .refused(refusal.reply.answer)
        }
    }

    /// A refusal with its headers.
    struct Refusal: Error {
        let reply: RegistrarReply
        init(_ problem: Problem) { reply = RegistrarReply(problem) }
        init(_ reply: RegistrarReply) { self.reply = reply }
    }

    func admission(of http: HTTPRequest) -> Result<RequestAdmission, Refusal> {
        let route: RegistrarRoute
        do throws(RegistrarRoute.Failure) {
            route = try RegistrarRoute(path: http.path)
        } catch {
            return .failure(Self.refusal(of: http, error))
        }
        if let refusal = Self.refusal(of: http, but: route.methods) { return .failure(refusal) }
        do throws(Problem) {
            try http.check(route)
            return .success(RequestAdmission(route: route, asker: try asker(http, route)))
        } catch {
            return .failure(Refusal(error))
        }
    }

    private static func refusal(
        of http: HTTPRequest, _ failure: RegistrarRoute.Failure
    ) -> Refusal {
        switch failure {
        case .notFound:
            Refusal(Problem(.notFound, "unknown path", remedy: "see /v1/openapi.json"))
        case .invalid(let part, let remedy, let methods):
            refusal(of: http, but: methods)
                ?? Refusal(
                    Problem(
                        .invalid, "the path's \(part) is not allowed", remedy: remedy, field: part))
        }
    }

    /// The refusal of a method that is none of these; nil if it is one of them.
    private static func refusal(of http: HTTPRequest, but methods: [String]) -> Refusal? {
        guard !methods.contains(http.method.rawValue) else { return nil }
        var reply = RegistrarReply(
            Problem(
                .methodNotAllowed, "the path has no \(http.method.rawValue)",
                remedy: "use \(methods.joined(separator: " or "))"))
        reply.headers["Allow"] = methods.joined(separator: ", ")
        return Refusal(reply)
    }

    private func asker(
        _ http: HTTPRequest, _ route: RegistrarRoute
    ) throws(Problem) -> RequestAdmission.Asker {
        let scope: AccessCheck.Scope
        switch route {
        case .attestation where http.headers[PeerSeal.kindHeader] != nil:
            return .replica(try owners.passed(http))
        case .openAPI, .challenge, .attestation: return .anybody
        case .batch(let environment, let app):
            scope = AccessCheck.Scope(environment: environment, app: app)
        case .installation(let key), .all(let key, _), .handler(let key, _, _):
            if http.headers[PeerSeal.kindHeader] != nil {
                return .replica(try owners.passed(http))
            }
            scope = AccessCheck.Scope(
                environment: key.environment, app: key.app, installation: key.installation)
        }
        let resource = route.installation.map { RegistrarRequest.path(of: $0, route) }
        return .caller(
            try callers.admission(of: http, scope, resource: resource ?? http.path))
    }

    private func bodyBytesMax(_ admission: RequestAdmission) -> Int {
        switch (admission.asker, admission.route) {
        // Written anew by the other replica, some texts are longer than the caller wrote them.
        case (.replica, _): 4 * limits.bodyBytesMax
        case (.anybody, .challenge): limits.challengeBytesMax
        case (.anybody, .attestation): limits.attestationBytesMax
        default: limits.bodyBytesMax
        }
    }
}
