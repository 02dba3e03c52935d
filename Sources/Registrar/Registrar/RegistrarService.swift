// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Foundation
internal import HTTPListener
internal import LinuxIO
internal import Logging
internal import OpenSSL
internal import PushModel
internal import RecordFormats
internal import RegistrarAccess
internal import RegistrarRules
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

    func answer(_ http: HTTPRequest) async -> HTTPAnswer {
        // The listener has asked before it read the body.
        guard let admission = http.admitted as? RequestAdmission else {
            preconditionFailure("a request is answered after it was admitted")
        }
        let answer = await answer(http, admission)
        tally.count(http.method.rawValue, status: answer.status)
        return answer
    }

    private func answer(_ http: HTTPRequest, _ admission: RequestAdmission) async -> HTTPAnswer {
        var reply: RegistrarReply
        do throws(Problem) {
            try http.check(admission.route)
            if case .openAPI = admission.route { return OpenAPIDocument.answer }
            reply = try await self.reply(to: http, admission)
        } catch {
            reply = RegistrarReply(error)
        }
        if case .replica(let passed) = admission.asker { owners.sign(&reply, to: passed) }
        return reply.answer
    }

    private func reply(
        to http: HTTPRequest, _ admission: RequestAdmission
    ) async throws(Problem) -> RegistrarReply {
        let caller: RegistrarCaller
        switch admission.asker {
        case .anybody: return try await attest(http, admission.route)
        case .caller(let shown): caller = try callers.caller(of: shown, body: http.body)
        case .replica(let passed):
            caller = RegistrarCaller(passed)
            guard PeerSeal.digest(http.body) == passed.digest else {
                throw Problem(
                    .unauthorized, "the body is not what another registrar has passed on",
                    remedy: "send the request again")
            }
            if let key = admission.route.installation {
                let reply = try await passedOn(
                    passed.kind, http, key, admission.route, caller)
                if let reply { return reply }
            }
        }
        guard let key = admission.route.installation else {
            return try await batch(http, admission.route, caller)
        }
        let request = try RegistrarRequest(http, route: admission.route, caller: caller)
        // How many records a complete set has is not known before it is read.
        if !request.isForwarded { try take(1, of: caller, request.isCompleteSet ? nil : key) }
        let reply: RegistrarReply
        do throws(Problem) {
            reply = try await perform(request, key)
        } catch {
            reply = RegistrarReply(error)
        }
        if http.method != .get { audit(request, key, status: reply.status) }
        return reply
    }

    // MARK: Who asks, and how often

    private func attest(
        _ http: HTTPRequest, _ route: RegistrarRoute
    ) async throws(Problem) -> RegistrarReply {
        guard case .attestation(let key) = route else {
            guard case .challenge(let key) = route else {
                preconditionFailure("only a route of App Attest comes here")
            }
            return try callers.challenge(key)
        }
        let body = try reader.read(http.body) { object throws(InvalidMember) in
            try AttestationBody(object)
        }
        try callers.checkChallenge(of: body, key)
        // Nobody has shown who they are yet, so all have one rate, a tenth of a caller's, and one address a
        // quarter of that: to verify an attestation takes about a millisecond.
        guard rates.take(40, of: "attest from \(http.strangersAddress)", nil) == nil,
            rates.take(10, of: "attest", nil) == nil
        else {
            throw Problem(
                .tooManyRequests, "too many apps attest themselves at once",
                remedy: "wait, and send the same request again", retryAfterSeconds: 1)
        }
        let issued = try callers.attest(body, key)
        let request = try RegistrarRequest(
            http, route: route, caller: RegistrarCaller(issued.caller))
        let claim = InstallationClaim(
            key: key, attestedKey: issued.attestedKey, until: issued.claimEnds)
        var reply: RegistrarReply
        do throws(Problem) {
            reply = try await owners.claim(claim, request)
        } catch {
            reply = RegistrarReply(error)
        }
        audit(request, key, status: reply.status)
        guard reply.status == 200 else { return reply }
        return RegistrarReply(
            .object([
                ("credential", .string(issued.credential.text)),
                ("expiresAt", .string(issued.expiresAt.rfc3339)),
            ]))
    }

    /// Answers what another replica asks and no path says; nil for a request that its path says.
    private func passedOn(
        _ kind: String, _ http: HTTPRequest, _ key: InstallationKey, _ route: RegistrarRoute,
        _ caller: RegistrarCaller
    ) async throws(Problem) -> RegistrarReply? {
        func body<Body>(
            _ read: (JSONObject) throws(InvalidMember) -> Body
        ) throws(Problem) -> Body {
            try reader.read(http.body, read)
        }
        let request = try RegistrarRequest(http, route: route, caller: caller)
        switch kind {
        case KeyOwners.forwardedList: return await owners.ownedList(of: key)
        case KeyOwners.forwardedClaim:
            return try await owners.claim(
                try body(ClaimBody.init).claim(of: key), request)
        case KeyOwners.forwardedRemoval:
            let named = try body(KeyPartBody.init)
            return try await owners.remove(
                RegistrationArbiter.Removal(
                    key: key, handler: named.keyPart, below: named.below,
                    isOnlyIfKnown: named.isOnlyIfKnown), nil, request)
        case KeyOwners.forwardedRecord:
            return try await owners.stored(
                key, try body(KeyPartBody.init).keyPart, nil, request)
        case KeyOwners.forwardedHandler where http.method != .post: return nil
        default:
            throw Problem(
                .invalid, "registrars of this version pass no such request on",
                remedy: "run all registrars in one version")
        }
    }

    func take(
        _ count: Int, of caller: RegistrarCaller, _ key: InstallationKey?
    ) throws(Problem) {
        guard let wait = rates.take(count, of: caller.id, key) else { return }
        throw Self.tooMany(key == nil ? "the caller" : "the caller or the installation", wait)
    }

    /// Takes the records of a request that writes several.
    func takeRecords(_ count: Int, of key: InstallationKey) throws(Problem) {
        guard count > 0, let wait = rates.takeRecords(count, of: key) else { return }
        throw Self.tooMany("the installation", wait)
    }

    private static func tooMany(_ names: String, _ wait: Duration) -> Problem {
        Problem(
            .tooManyRequests, "there are more requests than \(names) may make",
            remedy: "wait, and send the same request again",
            retryAfterSeconds: max(1, Int(wait.components.seconds) + 1))
    }

    // MARK: What is asked

    /// Handlers of one GET that are read together: what they take is in memory beside the page.
    private static let readAtOnce = 4

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
            let reply = try await owners.remove(
                RegistrationArbiter.Removal(
                    key: key, handler: tokenClass.keyPart(of: handler),
                    below: request.belowSequence, tokenClass: tokenClass), tokenClass, request)
            guard reply.status == 204 else { return reply }
            return await owners.endImports(of: [key], tokenClass, request) ?? reply
        case (.delete, .all(_, let tokenClass)):
            return try await removeAll(key, tokenClass, request)
        case (.delete, _): return try await removeAll(key, nil, request)
        default: preconditionFailure("only a method that the route has comes here")
        }
    }

    func check(
        _ snapshot: SnapshotReader.Snapshot, _ caller: RegistrarCaller
    ) throws(Problem) {
        if let sequence = snapshot.sequence, !caller.allows(sequence: sequence) {
            throw Problem(
                .invalid, "the sequence is far ahead of the clock",
                remedy: "count in milliseconds since 1970, or up from 0", field: "/sequence")
        }
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
        let reply = try await owners.put(
            reader.draft(
                key, tokenClass, handler.name, handler.targets, sequence: snapshot.sequence),
            request)
        guard reply.status == 200 else { return reply }
        return await endImports(snapshot, key, tokenClass, request) ?? reply
    }

    /// What was imported ends with the first registration of its installation's own, also where it is known
    /// by its token alone.
    ///
    /// - Returns: the answer if that could not be written: the same request again completes it.
    func endImports(
        _ snapshot: SnapshotReader.Snapshot, _ key: InstallationKey,
        _ tokenClass: RegistrationClass, _ request: RegistrarRequest
    ) async -> RegistrarReply? {
        guard owners.mayEndImports(request) else { return nil }
        let tokens = snapshot.handlers.flatMap(\.targets).compactMap(\.token)
        let named = Set(tokens).map { token in
            InstallationKey(
                environment: key.environment, app: key.app,
                installation: ImportedRegistration.installation(
                    ofTokenDigest: SHA256Digest.of(token)))
        }
        return await owners.endImports(of: [key] + named, tokenClass, request)
    }

    private func get(
        _ key: InstallationKey, _ tokenClass: RegistrationClass?, _ request: RegistrarRequest
    ) async throws(Problem) -> RegistrarReply {
        var rest = try await owners.handlers(of: key, request).filter {
            (tokenClass == nil || $0.tokenClass == tokenClass) && !$0.isClaim
                && (request.after.map { [keyPart = $0.keyPart] in $0 < keyPart } ?? true)
        }[...]
        var found: [JSONText] = []
        var bytes = 0
        var last: String?
        while !rest.isEmpty, bytes < limits.pageBytes {
            let some = Array(rest.prefix(Self.readAtOnce))
            let replies = await RegistrarReply.all(some) { handler throws(Problem) in
                try await owners.stored(key, handler.keyPart, handler.tokenClass, request)
            }
            for (handler, reply) in zip(some, replies) where bytes < limits.pageBytes {
                // What has been removed since is left out; what cannot be read must not look so.
                guard reply.status == 200 || reply.status == 404 else { return reply }
                if reply.status == 200, let body = reply.body {
                    bytes += body.utf8.count
                    found.append(.literal(body))
                }
                last = rest.removeFirst().keyPart
                assert(last == handler.keyPart, "handlers are shown in the order of their names")
            }
        }
        var members = [("handlers", JSONText.array(found))]
        if !rest.isEmpty, let last { members.append(("next", .string(last))) }
        return RegistrarReply(.object(members))
    }

    /// Removes the handlers of a class, or all. Those that are not below the request's sequence stay.
    private func removeAll(
        _ key: InstallationKey, _ tokenClass: RegistrationClass?, _ request: RegistrarRequest
    ) async throws(Problem) -> RegistrarReply {
        let below = request.belowSequence
        let removed = try await owners.handlers(of: key, request).filter { handler in
            guard tokenClass == nil || handler.tokenClass == tokenClass else { return false }
            // A claim's sequence is a time. It goes with the whole installation.
            if handler.isClaim { return below == nil }
            guard let below, let stored = handler.sequence else { return true }
            return stored < below
        }
        let replies = await RegistrarReply.all(removed) { handler throws(Problem) in
            try await owners.remove(
                RegistrationArbiter.Removal(key: key, handler: handler.keyPart, below: below),
                handler.tokenClass, request)
        }
        // What has been written since it was listed may be above the sequence, and stays too.
        let isLeft = below == nil ? [204] : [204, 409]
        return replies.first { !isLeft.contains($0.status) } ?? RegistrarReply(status: 204)
    }

    // MARK: Audit

    /// One line for each write. It has neither tokens nor subjects. What was passed on has one in the
    /// log of each of the two replicas.
    func audit(_ request: RegistrarRequest, _ key: InstallationKey, status: Int) {
        logger.info(
            request.isForwarded ? "registration passed on by another registrar" : "registration",
            metadata: [
                "caller": "\(request.caller.id)", "method": "\(request.method.rawValue)",
                "path": "\(request.target)", "status": .stringConvertible(status),
            ])
    }
}
