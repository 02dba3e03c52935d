// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Foundation
internal import HTTPListener
internal import KafkaLog
internal import PushModel
internal import RecordFormats
internal import RegistrarAccess
internal import RegistrarRules

/// Has each key's owner answer: this replica, or the one that the request is passed on to.
///
/// While a partition changes its owner nobody answers for it; a request waits for the new one, and is
/// told to come again if that takes too long.
struct KeyOwners: Sendable {
    let mailbox: RegistrarMailbox
    let directory: OwnerDirectory
    let forwarder: Forwarder
    let store: RecordStore
    let reader: BodyReader
    let ownURL: String?
    /// What the replicas know each other by; nil for one that has no others.
    let seal: PeerSeal?
    /// How long a request waits for an owner, from its arrival.
    var patience = Duration.seconds(5)
    /// When an owner's answer is of no use any more, from the request's arrival.
    var forwardingMax = Duration.seconds(12)

    static let forwardedHandler = "handler"
    static let forwardedList = "list"
    static let forwardedClaim = "claim"
    /// Of a record that no path names, as `KeyPartBody` does.
    static let forwardedRemoval = "removal"
    static let forwardedRecord = "record"
    private static let pause = Duration.milliseconds(100)

    /// A handler of an installation, wherever it is.
    struct Known: Sendable {
        var keyPart: String
        var tokenClass: RegistrationClass?
        var sequence: Int64?
        /// As `RegistrationSummary.content`.
        var content: UInt64?

        var isClaim: Bool { keyPart == InstallationClaim.handler }
    }

    // MARK: Other replicas

    /// A request that another replica has passed on, by its head.
    func passed(_ http: HTTPRequest) throws(Problem) -> PeerSeal.Passed {
        guard let seal, let ownURL,
            let passed = seal.passed(http, to: ownURL, now: AccessCheck.now())
        else {
            throw Problem(
                .unauthorized, "only another registrar passes requests on",
                remedy: "leave the header \(PeerSeal.kindHeader) out")
        }
        return passed
    }

    /// Signs the answer to a request that was passed on.
    func sign(_ reply: inout RegistrarReply, to passed: PeerSeal.Passed) {
        let body = reply.body.map { Array($0.utf8) } ?? []
        reply.headers[PeerSeal.signatureHeader] =
            seal?.signature(ofAnswer: reply.status, body, to: passed)
    }

    private func forward(
        _ request: RegistrarRequest, to url: String, as kind: String
    ) async -> RegistrarReply? {
        guard let seal else { return nil }
        let passed = PeerSeal.Passed(
            method: request.method.rawValue, target: request.target, owner: url, kind: kind,
            caller: request.caller.id, date: AccessCheck.now(),
            digest: PeerSeal.digest(request.body))
        var headers = seal.headers(of: passed)
        if !request.body.isEmpty { headers.append(("content-type", "application/json")) }
        let answer = await forwarder.answer(
            to: Forwarder.Request(
                base: url, method: passed.method, target: passed.target, headers: headers,
                body: request.body, deadline: request.arrivedAt + forwardingMax))
        // Somebody else may have the address by now.
        guard let answer else { return nil }
        guard let signature = answer.signature,
            seal.isSigned(
                signature, status: answer.status, body: answer.body, answering: passed)
        else {
            forwarder.disbelieve(status: answer.status, of: url)
            return nil
        }
        var reply = RegistrarReply(
            status: answer.status,
            body: answer.body.isEmpty ? nil : String(decoding: answer.body, as: UTF8.self))
        if answer.retryAfterSeconds > 0 { reply.retryAfterSeconds = answer.retryAfterSeconds }
        return reply
    }

    /// Asks the owner of a key: this replica by `local`, which returns nil if it is not the owner.
    ///
    /// - Parameter body: what is passed on instead of the request's; it is made only if that is.
    private func ask(
        _ key: [UInt8], _ request: RegistrarRequest, as kind: String = forwardedHandler,
        body: (() -> [UInt8])? = nil,
        _ local: (Int32) async throws(Problem) -> RegistrarReply?
    ) async throws(Problem) -> RegistrarReply {
        let deadline = request.arrivedAt + patience
        // What an owner has said that could not do it: it knows why.
        var refused: RegistrarReply?
        repeat {
            if let partition = directory.partition(of: key) {
                if let reply = try await local(partition) { return reply }
                if !request.isForwarded, let url = directory.url(of: partition), url != ownURL {
                    var passed = request
                    if let body { passed.body = body() }
                    let reply = await forward(passed, to: url, as: kind)
                    if let reply, reply.status != 503, reply.status != 401 { return reply }
                    if let reply, reply.status == 503 { refused = reply }
                }
                if request.isForwarded { break }
            }
            try checkRuns()
            directory.refresh()
            try? await Task.sleep(for: Self.pause)
        } while ContinuousClock.now < deadline
        if let refused { return refused }
        throw directory.isKnown
            ? .unavailable("the owner of this registration is changing")
            : .unavailable("Kafka does not answer")
    }

    /// A replica that stops waits for no other owner: the caller is to ask another replica.
    private func checkRuns() throws(Problem) {
        if mailbox.isStopping { throw .unavailable("this registrar is stopping") }
    }

    // MARK: One handler

    func put(
        _ put: RegistrationArbiter.Put, _ request: RegistrarRequest
    ) async throws(Problem) -> RegistrarReply {
        return try await ask(
            put.key.recordKey(handler: put.handler), request,
            body: { [reader] in reader.body(of: put) }
        ) { partition throws(Problem) in
            switch await mailbox.put(put, in: partition) {
            case .notOwner: return nil
            case let answer: return try Self.reply(to: answer)
            }
        }
    }

    func remove(
        _ removal: RegistrationArbiter.Removal, _ tokenClass: RegistrationClass?,
        _ request: RegistrarRequest
    ) async throws(Problem) -> RegistrarReply {
        var (passed, kind) = self.passed(
            request, .delete, removal.key, removal.handler, tokenClass, below: removal.below)
        if removal.isOnlyIfKnown {
            let body = KeyPartBody(
                keyPart: removal.handler, below: removal.below, isOnlyIfKnown: true)
            (passed, kind) = (
                Self.passed(request, about: removal.key, body.json), Self.forwardedRemoval
            )
        }
        return try await ask(
            removal.key.recordKey(handler: removal.handler), passed, as: kind
        ) { partition throws(Problem) in
            switch await mailbox.remove(removal, in: partition) {
            case .notOwner: return nil
            case let answer: return try Self.reply(to: answer)
            }
        }
    }

    /// Whether a registration that this request writes may end an imported one: not where no replica has
    /// any, nor where another one asks, to which the request came first.
    func mayEndImports(_ request: RegistrarRequest) -> Bool {
        !request.isForwarded && (directory.owners.hasImports || mailbox.counters.hasImports)
    }

    /// Ends what was imported of these installations, since one has registered this class itself.
    ///
    /// - Returns: the answer of an owner that has not done so; nil if all have.
    func endImports(
        of keys: [InstallationKey], _ tokenClass: RegistrationClass, _ request: RegistrarRequest
    ) async -> RegistrarReply? {
        guard mayEndImports(request) else { return nil }
        let handler = ImportedRegistration.handler(of: tokenClass.tokenClass)
        let replies = await RegistrarReply.all(keys) { key throws(Problem) in
            try await remove(
                RegistrationArbiter.Removal(key: key, handler: handler, isOnlyIfKnown: true), nil,
                request)
        }
        return replies.first { $0.status != 204 }
    }

    /// Claims an installation for a key that has attested itself for it.
    func claim(
        _ claim: InstallationClaim, _ request: RegistrarRequest
    ) async throws(Problem) -> RegistrarReply {
        let passed = Self.passed(request, about: claim.key, ClaimBody(claim).json)
        return try await ask(
            claim.key.recordKey(handler: InstallationClaim.handler), passed,
            as: Self.forwardedClaim
        ) { partition throws(Problem) in
            switch await mailbox.claim(claim, in: partition) {
            case .notOwner: return nil
            case .claimed(let end): throw Problem(AccessRefusal.claimed(until: end))
            case let answer: return try Self.reply(to: answer)
            }
        }
    }

    private static func passed(
        _ request: RegistrarRequest, about key: InstallationKey, _ body: [UInt8]
    ) -> RegistrarRequest {
        var passed = request
        passed.method = .post
        passed.body = body
        passed.target = RegistrarRequest.base(of: key) + "/attest"
        return passed
    }

    /// What is stored of a handler, with token IDs in place of tokens.
    func stored(
        _ key: InstallationKey, _ keyPart: String, _ tokenClass: RegistrationClass?,
        _ request: RegistrarRequest
    ) async throws(Problem) -> RegistrarReply {
        let (passed, kind) = self.passed(request, .get, key, keyPart, tokenClass, below: nil)
        return try await ask(key.recordKey(handler: keyPart), passed, as: kind) {
            partition throws(Problem) in
            // Between the question where a record is and its reading it may be replaced.
            for _ in 0..<3 {
                guard let owned = await mailbox.list(key, in: [partition]) else { return nil }
                let listed = owned.handlers.first { $0.handler == keyPart }
                guard let listed,
                    tokenClass == nil || listed.summary.tokenClass == nil
                        || listed.summary.tokenClass == tokenClass
                else { throw Self.notFound }
                switch await store.record(partition: partition, offset: listed.offset) {
                case .value(let value?):
                    guard let json = reader.shown(value, key, keyPart, tokenClass) else {
                        throw Self.unreadable
                    }
                    return RegistrarReply(json)
                case .value(nil), .gone: break
                case .unavailable:
                    throw .unavailable("the registration cannot be read from Kafka")
                }
            }
            throw .unavailable("the registration cannot be read from Kafka")
        }
    }

    /// How another replica is asked for a record, or for its removal: by its path, if there is one.
    private func passed(
        _ request: RegistrarRequest, _ method: HTTPRequest.Method, _ key: InstallationKey,
        _ keyPart: String, _ tokenClass: RegistrationClass?, below: Int64?
    ) -> (RegistrarRequest, kind: String) {
        // The class in the path names the default handler; for another one any class would do.
        let handler = RegistrationClass.handler(keyPart: keyPart)
        let word =
            tokenClass
            ?? RegistrationClass.allCases.first { keyPart == $0.keyPart(of: handler) } ?? .controls
        guard RegistrationClass.isHandlerName(handler), word.keyPart(of: handler) == keyPart else {
            let body = KeyPartBody(keyPart: keyPart, below: below)
            return (
                Self.passed(request, about: key, body.json),
                method == .delete ? Self.forwardedRemoval : Self.forwardedRecord
            )
        }
        var passed = request
        passed.method = method
        passed.body = []
        passed.target = RegistrarRequest.base(of: key) + "/\(word.rawValue)/\(handler)"
        if let below { passed.target += "?belowSequence=\(below)" }
        return (passed, Self.forwardedHandler)
    }

    private static func reply(
        to answer: RegistrationArbiter.Answer
    ) throws(Problem) -> RegistrarReply {
        switch answer {
        case .accepted(let sequence, let registeredAt, let isRetry):
            var members: [(String, JSONText)] = [("sequence", .literal("\(sequence)"))]
            if let registeredAt {
                members.append(("registeredAt", .string(registeredAt.rfc3339)))
            }
            members.append(("written", .literal(isRetry ? "false" : "true")))
            return RegistrarReply(.object(members))
        case .removed: return RegistrarReply(status: 204)
        case .stale(let stored): throw stale(stored)
        case .otherClass(let tokenClass): throw otherClass(tokenClass)
        case .tooManyHandlers: throw tooManyHandlers
        case .busy: throw .unavailable("too many writes are waiting for Kafka")
        case .unacknowledged: throw .unavailable("Kafka has not acknowledged the write")
        case .notOwner, .claimed:
            preconditionFailure("an owner's answer is of the kind that was asked for")
        }
    }

    static func stale(_ stored: Int64) -> Problem {
        Problem(
            .staleSequence, "a snapshot with sequence \(stored) is stored",
            remedy: "send the newest snapshot with a sequence above storedSequence",
            field: "/sequence", storedSequence: stored)
    }

    static func otherClass(_ tokenClass: RegistrationClass) -> Problem {
        Problem(
            .handlerOfAnotherClass,
            "this handler's name belongs to the installation's \(tokenClass.rawValue)",
            remedy: "use another name, or DELETE that handler first")
    }

    static let tooManyHandlers = Problem(
        .tooManyHandlers, "the installation has as many handlers as it may have",
        remedy: "DELETE those that the app does not have any more")

    /// Somebody else has written it.
    static let unreadable = Problem(
        .notFound, "the record of this handler is no registration",
        remedy: "PUT a snapshot, or DELETE the handler")

    static let notFound = Problem(
        .notFound, "nothing is stored for this handler", remedy: "PUT a snapshot first")

    // MARK: All handlers

    /// Where the record of a handler is; 0 while the number of partitions is not known.
    func partition(_ key: InstallationKey, _ keyPart: String) -> Int32 {
        directory.partition(of: key.recordKey(handler: keyPart)) ?? 0
    }

    /// The handlers of an installation, from all replicas.
    func handlers(
        of key: InstallationKey, _ request: RegistrarRequest
    ) async throws(Problem) -> [Known] {
        let deadline = request.arrivedAt + patience
        repeat {
            if let found = await allHandlers(of: key, request) { return found }
            try checkRuns()
            directory.refresh()
            try? await Task.sleep(for: Self.pause)
        } while ContinuousClock.now < deadline
        throw directory.isKnown
            ? .unavailable("the owner of these registrations is changing")
            : .unavailable("Kafka does not answer")
    }

    /// - Returns: nil if a partition has no owner that answers.
    private func allHandlers(
        of key: InstallationKey, _ request: RegistrarRequest
    ) async -> [Known]? {
        let owners = directory.owners
        guard owners.isKnown, let own = await mailbox.list(key, in: nil) else { return nil }
        var found = own.handlers.map {
            Known(
                keyPart: $0.handler, tokenClass: $0.summary.tokenClass,
                sequence: $0.summary.sequence, content: $0.summary.content)
        }
        var missing = Set(owners.urls.indices.map(Int32.init)).subtracting(own.partitions)
        for url in Set(missing.compactMap { owners.urls[Int($0)] }).sorted() where url != ownURL {
            var passed = request
            passed.method = .get
            passed.body = []
            passed.target = RegistrarRequest.base(of: key)
            guard let reply = await forward(passed, to: url, as: Self.forwardedList),
                reply.status == 200, let body = reply.body,
                let (partitions, handlers) = reader.list(in: body)
            else { return nil }
            found += handlers
            missing.subtract(partitions)
        }
        return missing.isEmpty ? found.sorted { $0.keyPart < $1.keyPart } : nil
    }

    /// What this replica has of an installation, for another that asks.
    func ownedList(of key: InstallationKey) async -> RegistrarReply {
        guard let own = await mailbox.list(key, in: nil) else {
            return RegistrarReply(.unavailable("this replica is stopping"))
        }
        return RegistrarReply(
            .object([
                (
                    "partitions",
                    .array(own.partitions.sorted().map { .literal("\($0)") })
                ),
                (
                    "handlers",
                    .array(
                        own.handlers.map { handler in
                            var members: [(String, JSONText)] = [
                                ("keyPart", .string(handler.handler))
                            ]
                            if let word = handler.summary.tokenClass?.rawValue {
                                members.append(("class", .string(word)))
                            }
                            if let sequence = handler.summary.sequence {
                                members.append(("sequence", .literal("\(sequence)")))
                            }
                            let content = String(handler.summary.content, radix: 16)
                            members.append(("content", .string(content)))
                            return .object(members)
                        })
                ),
            ]))
    }
}
