// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Foundation
internal import HTTPListener
internal import LinuxIO
internal import Logging
internal import OpenSSL
internal import PushModel
internal import RecordFormats
internal import Registering
internal import RegistrarAccess
internal import Simdjson
internal import Synchronization

/// Answers the registrar's HTTP requests: checks the caller and the body, and has the replica that
/// owns the key do the rest.
struct RegistrarService: Sendable {
    let callers: AccessCheck
    let owners: KeyOwners
    let limits: RegistrarLimits
    let reader: BodyReader
    let rates: CallerRates
    let tally: RequestTally
    let logger: Logger

    func answer(_ question: HTTPQuestion) async -> HTTPAnswer {
        let answer = await unmeteredAnswer(question)
        tally.count(question.method.rawValue, status: answer.status)
        return answer
    }

    private func unmeteredAnswer(_ question: HTTPQuestion) async -> HTTPAnswer {
        let route: RegistrarRoute
        do throws(RegistrarRoute.Failure) {
            route = try RegistrarRoute(path: question.path)
        } catch {
            switch error {
            case .notFound:
                return RegistrarReply(
                    Problem(.notFound, "this path is none", remedy: "see /v1/openapi.json")
                ).answer
            case .invalid(let part, let remedy):
                return RegistrarReply(
                    Problem(
                        .invalid, "the path's \(part) is not allowed", remedy: remedy, field: part)
                ).answer
            }
        }
        guard route.methods.contains(question.method.rawValue) else {
            var reply = RegistrarReply(
                Problem(
                    .methodNotAllowed, "the path has no \(question.method.rawValue)",
                    remedy: "use \(route.methods.joined(separator: " or "))"))
            reply.headers["Allow"] = route.methods.joined(separator: ", ")
            return reply.answer
        }
        do throws(Problem) {
            return try await answer(question, route)
        } catch {
            return RegistrarReply(error).answer
        }
    }

    private func answer(
        _ question: HTTPQuestion, _ route: RegistrarRoute
    ) async throws(Problem) -> HTTPAnswer {
        try question.check(route)
        switch route {
        case .openAPI: return OpenAPIDocument.answer
        case .challenge, .attestation:
            // Nobody has shown who they are yet, so all have one rate, a tenth of a caller's: an
            // attestation costs about a millisecond.
            guard rates.take(10, of: "attest", nil) == nil else {
                throw Problem(
                    .tooManyRequests, "too many apps attest themselves at once",
                    remedy: "wait, and send the same request again", retryAfterSeconds: 1)
            }
            return try attest(question, route).answer
        case .batch(let environment, let app):
            let caller = try self.caller(of: question, environment, app, installation: nil)
            return try await batch(question, environment, app, caller).answer
        case .installation(let key), .all(let key, _), .handler(let key, _, _):
            let caller = try self.caller(
                of: question, key.environment, key.app, installation: key.installation)
            if question.headers[KeyOwners.forwardedHeader] == KeyOwners.forwardedList {
                return await owners.ownedList(of: key).answer
            }
            let request = try RegistrarRequest(question, route: route, caller: caller)
            if !request.isForwarded { try take(1, of: caller, key) }
            let reply: RegistrarReply
            do throws(Problem) {
                reply = try await perform(request, key)
            } catch {
                reply = RegistrarReply(error)
            }
            if question.method != .get { audit(request, key, status: reply.status) }
            return reply.answer
        }
    }

    // MARK: Who asks, and how often

    private func caller(
        of question: HTTPQuestion, _ environment: PushEnvironment, _ app: String,
        installation: String?
    ) throws(Problem) -> RegistrarCaller {
        if question.headers[KeyOwners.forwardedHeader] != nil {
            return try owners.peer(question)
        }
        return try callers.caller(
            of: question, environment, app: app, installation: installation)
    }

    private func attest(
        _ question: HTTPQuestion, _ route: RegistrarRoute
    ) throws(Problem) -> RegistrarReply {
        guard case .attestation(let key) = route else {
            guard case .challenge(let environment, let app) = route else {
                preconditionFailure("a route that has nothing to do with App Attest")
            }
            return try callers.challenge(environment, app: app)
        }
        let body = try reader.read(question.body) { object throws(InvalidMember) in
            try AttestationBody(object)
        }
        return try callers.attest(body, key)
    }

    func take(
        _ count: Int, of caller: RegistrarCaller, _ key: InstallationKey?
    ) throws(Problem) {
        guard let wait = rates.take(count, of: caller.id, key) else { return }
        let names = key == nil ? "the caller" : "the caller or the installation"
        throw Problem(
            .tooManyRequests, "there are more requests than \(names) may make",
            remedy: "wait, and send the same request again",
            retryAfterSeconds: max(1, Int(wait.components.seconds) + 1))
    }

    // MARK: What is asked

    func perform(
        _ request: RegistrarRequest, _ key: InstallationKey
    ) async throws(Problem) -> RegistrarReply {
        switch (request.method, request.route) {
        case (.put, .handler(_, let tokenClass, let handler)):
            let snapshot = try reader.read(request.body) { object throws(InvalidMember) in
                try SnapshotReader(limits: limits).snapshot(
                    object, of: key, tokenClass, handler: handler)
            }
            return try await put(snapshot, key, tokenClass, request)
        case (.put, .all):
            let snapshot = try reader.read(request.body) { object throws(InvalidMember) in
                try SnapshotReader(limits: limits).completeSet(object, of: key)
            }
            return try await putAll(snapshot, key, request)
        case (.get, .handler(_, let tokenClass, let handler)):
            return try await owners.stored(
                key, tokenClass.keyPart(of: handler), tokenClass, request)
        case (.get, .all(_, let tokenClass)): return try await get(key, tokenClass, request)
        case (.get, _): return try await get(key, nil, request)
        case (.delete, .handler(_, let tokenClass, let handler)):
            return try await owners.remove(
                RegistrationDesk.Removal(
                    key: key, handler: tokenClass.keyPart(of: handler),
                    below: request.belowSequence), tokenClass, request)
        case (.delete, .all(_, let tokenClass)):
            return try await removeAll(key, tokenClass, request)
        case (.delete, _): return try await removeAll(key, nil, request)
        default: preconditionFailure("a method that the route does not have")
        }
    }

    func check(
        _ snapshot: SnapshotReader.Snapshot, _ caller: RegistrarCaller
    ) throws(Problem) {
        for handler in snapshot.handlers {
            for target in handler.targets {
                // What shows no subject hears of everything of its kind.
                let subjects = target.shows.flatMap { $0.subjects.isEmpty ? [""] : $0.subjects }
                for subject in subjects where !caller.allows(subject: subject) {
                    throw Problem(AccessRefusal.subject)
                }
            }
        }
    }

    private func put(
        _ snapshot: SnapshotReader.Snapshot, _ key: InstallationKey,
        _ tokenClass: RegistrationClass, _ request: RegistrarRequest
    ) async throws(Problem) -> RegistrarReply {
        try check(snapshot, request.caller)
        let handler = snapshot.handlers[0]
        return try await owners.put(
            reader.draft(
                key, tokenClass, handler.name, handler.targets, sequence: snapshot.sequence),
            request)
    }

    private func get(
        _ key: InstallationKey, _ tokenClass: RegistrationClass?, _ request: RegistrarRequest
    ) async throws(Problem) -> RegistrarReply {
        var found: [JSONText] = []
        for handler in try await owners.handlers(of: key, request)
        where tokenClass == nil || handler.tokenClass == tokenClass {
            let reply = try await owners.stored(
                key, handler.keyPart, handler.tokenClass, request)
            if reply.status == 200, let body = reply.body { found.append(.literal(body)) }
        }
        return RegistrarReply(.object([("handlers", .array(found))]))
    }

    /// Removes the handlers of a class, or all. Those that are not below the request's sequence stay.
    private func removeAll(
        _ key: InstallationKey, _ tokenClass: RegistrationClass?, _ request: RegistrarRequest
    ) async throws(Problem) -> RegistrarReply {
        let below = request.belowSequence
        let removed = try await owners.handlers(of: key, request).filter { handler in
            guard tokenClass == nil || handler.tokenClass == tokenClass else { return false }
            guard let below, let stored = handler.sequence else { return true }
            return stored < below
        }
        let replies = await RegistrarReply.all(removed) { handler throws(Problem) in
            try await owners.remove(
                RegistrationDesk.Removal(key: key, handler: handler.keyPart, below: below),
                handler.tokenClass, request)
        }
        // What has been written since it was listed may be above the sequence, and stays too.
        let isLeft = below == nil ? [204] : [204, 409]
        return replies.first { !isLeft.contains($0.status) } ?? RegistrarReply(status: 204)
    }

    // MARK: Audit

    /// One line for each write. It has neither tokens nor subjects.
    func audit(_ request: RegistrarRequest, _ key: InstallationKey, status: Int) {
        // The replica that the caller has reached writes the line.
        guard !request.isForwarded else { return }
        logger.info(
            "registration",
            metadata: [
                "caller": "\(request.caller.id)", "method": "\(request.method.rawValue)",
                "path": "\(request.target)", "status": .stringConvertible(status),
            ])
    }
}
