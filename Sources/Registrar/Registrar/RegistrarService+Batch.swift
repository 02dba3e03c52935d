// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import HTTPListener
internal import PushModel
internal import RecordFormats
internal import RegistrarRules

extension RegistrarService {
    func batch(
        _ http: HTTPRequest, _ route: RegistrarRoute, _ caller: RegistrarCaller
    ) async throws(Problem) -> RegistrarReply {
        guard case .batch(let environment, let app) = route else {
            preconditionFailure("a route without an installation is that of a batch")
        }
        let items = try reader.items(in: http.body, environment, app: app, limits: limits)
        let records = items.map { (try? $0.result.get())?.records ?? 1 }
        try take(records.reduce(0, +), of: caller, nil)
        // Items of one record each fill Kafka's batches, complete sets do so alone.
        let atOnce = RegistrarReply.recordsAtOnce / (records.max() ?? 1)
        let replies = await RegistrarReply.all(Array(items.indices), atOnce: atOnce) {
            index throws(Problem) in
            try await reply(to: items[index], at: index, http, caller)
        }
        return RegistrarReply(.object([("results", .array(replies.map(\.result)))]))
    }

    private func reply(
        to item: BatchItem, at index: Int, _ http: HTTPRequest, _ caller: RegistrarCaller
    ) async throws(Problem) -> RegistrarReply {
        let parts = try item.result.get()
        var request = try RegistrarRequest(http, route: parts.route, caller: caller)
        request.isOfBatch = true
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
            try takeRecords(parts.records, of: parts.key)
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
