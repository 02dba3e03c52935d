// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import HTTPListener
internal import PushModel
internal import RecordFormats
internal import Registering

extension RegistrarService {
    func batch(
        _ question: HTTPQuestion, _ environment: PushEnvironment, _ app: String,
        _ caller: RegistrarCaller
    ) async throws(Problem) -> RegistrarReply {
        let items = try reader.items(in: question.body, environment, app: app, limits: limits)
        try take(items.count, of: caller, nil)
        let replies = await RegistrarReply.all(Array(items.indices)) { index throws(Problem) in
            try await reply(to: items[index], at: index, question, caller)
        }
        return RegistrarReply(.object([("results", .array(replies.map(\.result)))]))
    }

    private func reply(
        to item: BatchItem, at index: Int, _ question: HTTPQuestion, _ caller: RegistrarCaller
    ) async throws(Problem) -> RegistrarReply {
        let parts = try item.result.get()
        var request = try RegistrarRequest(question, route: parts.route, caller: caller)
        request.method = parts.method
        request.body = parts.body
        request.belowSequence = parts.belowSequence
        request.target = RegistrarRequest.path(of: parts.key, parts.route)
        do throws(Problem) {
            guard caller.allows(parts.key) else {
                throw Problem(
                    .forbidden, "the caller may not write to this installation",
                    remedy: "use credentials for it")
            }
            try take(0, of: caller, parts.key)
            let reply = try await perform(request, parts.key)
            audit(request, parts.key, status: reply.status)
            return reply
        } catch {
            audit(request, parts.key, status: error.status)
            var problem = error
            // The item's body is a part of the batch's.
            if let field = error.field, field.hasPrefix("/") {
                problem.field = "/items/\(index)\(field)"
            }
            throw problem
        }
    }
}
