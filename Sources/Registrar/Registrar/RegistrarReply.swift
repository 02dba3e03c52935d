// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import HTTPListener
internal import PushModel
internal import RegistrarRules

/// An answer before it is an HTTP message of its own, or a part of a batch's.
struct RegistrarReply: Sendable {
    var status: Int
    /// JSON; nil for none.
    var body: String?
    var retryAfterSeconds: Int?
    var headers: [String: String] = [:]

    init(status: Int, body: String? = nil) {
        self.status = status
        self.body = body
    }

    init(_ json: JSONText) { self.init(status: 200, body: json.line) }

    init(_ problem: Problem) {
        self.init(status: problem.status, body: problem.json.line)
        retryAfterSeconds = problem.retryAfterSeconds
        headers["WWW-Authenticate"] = problem.challenge
    }

    /// Has all of these answered, so many at the same time, so that what they write goes to Kafka in few
    /// batches, and takes no more memory than the caller's share.
    /// - Returns: the replies in the order of `questions`; a problem is a reply too.
    static func all<Question: Sendable>(
        _ questions: [Question], atOnce: Int = recordsAtOnce,
        _ answer: @escaping @Sendable (Question) async throws(Problem) -> RegistrarReply
    ) async -> [RegistrarReply] {
        await withTaskGroup(of: (Int, RegistrarReply).self) { group in
            var replies = [RegistrarReply?](repeating: nil, count: questions.count)
            for (index, question) in questions.enumerated() {
                if index >= max(1, atOnce), let (done, reply) = await group.next() {
                    replies[done] = reply
                }
                group.addTask {
                    do throws(Problem) {
                        return (index, try await answer(question))
                    } catch {
                        return (index, RegistrarReply(error))
                    }
                }
            }
            for await (index, reply) in group { replies[index] = reply }
            return replies.map { $0! }
        }
    }

    /// Records of one request that wait for Kafka together: some 2 MB.
    static let recordsAtOnce = 256

    var answer: HTTPAnswer {
        var answer = HTTPAnswer(
            status: status,
            contentType: status < 400 ? "application/json" : "application/problem+json",
            body: body.map { Array($0.utf8) } ?? [])
        answer.headers = headers
        if let retryAfterSeconds { answer.headers["Retry-After"] = "\(retryAfterSeconds)" }
        return answer
    }

    /// The entry of a batch's results.
    var result: JSONText {
        var members: [(String, JSONText)] = [("status", .literal("\(status)"))]
        if let body { members.append((status < 400 ? "body" : "problem", .literal(body))) }
        return .object(members)
    }
}

extension Problem {
    static func unavailable(_ detail: String) -> Problem {
        Problem(
            .unavailable, detail, remedy: "send the same request again", retryAfterSeconds: 1)
    }

    /// Gives the listener's own refusals the form of all others.
    static func dressing(_ answer: HTTPAnswer, bodyBytesMax: Int) -> HTTPAnswer {
        let name = Problem.Name(status: answer.status) ?? .badRequest
        let text = String(decoding: answer.body, as: UTF8.self).filter { $0 != "\n" }
        let remedy =
            switch name {
            case .bodyTooLarge:
                "send at most \(bodyBytesMax) bytes: fewer items in a batch, fewer targets of a handler"
            case .headerTooLarge: "send fewer or shorter headers"
            case .expectationFailed: "leave Expect out, or send Expect: 100-continue"
            default: "see /v1/openapi.json"
            }
        var dressed = RegistrarReply(Problem(name, text, remedy: remedy)).answer
        dressed.status = answer.status
        dressed.headers.merge(answer.headers) { own, _ in own }
        return dressed
    }
}
