// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import HTTPListener
internal import PushModel
internal import RecordFormats
internal import RegistrarRules

extension RegistrarService {
    /// Writes the complete set of an installation's controls. One that is refused writes nothing;
    /// otherwise all handlers that it names are written at once, and those that it does not name are
    /// removed when these are safe.
    func putAll(
        _ snapshot: SnapshotReader.Snapshot, _ key: InstallationKey, _ request: RegistrarRequest
    ) async throws(Problem) -> RegistrarReply {
        try check(snapshot, request.caller)
        // A batch has counted them.
        if !request.isOfBatch { try takeRecords(max(1, snapshot.handlers.count), of: key) }
        let puts = snapshot.handlers.map { handler in
            reader.draft(
                key, .controls, handler.name, handler.targets, sequence: snapshot.sequence)
        }
        let set = try await completeSet(puts, snapshot.sequence, key, request)
        let replies = await RegistrarReply.all(puts) { put throws(Problem) in
            var put = put
            put.sequence = set.sequence
            let name = RegistrationClass.handler(keyPart: put.handler)
            return try await owners.put(put, request.passing(.put, "/controls/\(name)"))
        }
        if let refused = replies.first(where: { $0.status != 200 }) { return refused }
        let removals = await RegistrarReply.all(set.removed) { keyPart throws(Problem) in
            try await owners.remove(
                RegistrationArbiter.Removal(key: key, handler: keyPart, below: set.sequence),
                .controls, request)
        }
        if let refused = removals.first(where: { $0.status != 204 }) { return refused }
        if let refused = await endImports(snapshot, key, .controls, request) { return refused }
        return try acceptance(of: set, replies)
    }

    private func completeSet(
        _ puts: [RegistrationArbiter.Put], _ sequence: Int64?, _ key: InstallationKey,
        _ request: RegistrarRequest
    ) async throws(Problem) -> CompleteSet {
        let stored = try await owners.handlers(of: key, request)
        do throws(CompleteSet.Refusal) {
            return try CompleteSet(
                puts.map {
                    CompleteSet.Named(
                        keyPart: $0.handler, partition: owners.partition(key, $0.handler),
                        content: $0.content)
                },
                replacing: stored.map {
                    CompleteSet.Stored(
                        keyPart: $0.keyPart, partition: owners.partition(key, $0.keyPart),
                        tokenClass: $0.tokenClass, sequence: $0.sequence, content: $0.content)
                }, sequence: sequence, handlersMax: limits.handlersMax)
        } catch {
            switch error {
            case .stale(let stored): throw KeyOwners.stale(stored)
            case .otherClass(let tokenClass): throw KeyOwners.otherClass(tokenClass)
            case .tooManyHandlers: throw KeyOwners.tooManyHandlers
            }
        }
    }

    private func acceptance(
        of set: CompleteSet, _ replies: [RegistrarReply]
    ) throws(Problem) -> RegistrarReply {
        var isWritten = !set.removed.isEmpty
        var registeredAt: String?
        for reply in replies {
            guard let body = reply.body else { continue }
            let written = try reader.acceptance(in: body)
            isWritten = isWritten || written.isWritten
            registeredAt = written.registeredAt ?? registeredAt
        }
        var members: [(String, JSONText)] = [("sequence", .literal("\(set.sequence)"))]
        if let registeredAt { members.append(("registeredAt", .string(registeredAt))) }
        members.append(("written", .literal(isWritten ? "true" : "false")))
        let names = set.removed.map { RegistrationClass.handler(keyPart: $0) }
        members.append(("removed", .array(names.map { .string($0) })))
        return RegistrarReply(.object(members))
    }
}
