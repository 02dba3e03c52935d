// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import HTTPTypes
internal import Hummingbird
internal import HummingbirdCore
internal import NIOCore

/// What Hummingbird hands on of a request beside the request: its connection.
struct ListenerContext: RequestContext {
    var coreContext: CoreRequestContextStorage
    let channel: any Channel

    init(source: ApplicationRequestContextSource) {
        coreContext = CoreRequestContextStorage(source: source)
        channel = source.channel
    }
}

/// Adapts a listener to Hummingbird: turns its requests into questions, and answers into responses
/// with the headers that all of them have.
struct ListenerResponder: HTTPResponder {
    typealias Context = ListenerContext

    let access: AccessRule
    let bodyBytesMax: Int
    let passesAllMethods: Bool
    let formatRefusal: (@Sendable (HTTPAnswer) -> HTTPAnswer)?
    /// Whether `ConnectionBounds` has looked at the head.
    let hasAdmission: Bool
    let answer: @Sendable (HTTPQuestion) async -> HTTPAnswer

    func respond(to request: Request, context: Context) async throws -> Response {
        let answer = await answer(to: request, on: context.channel)
        let isHead = request.method == .head
        var headers = Self.headers(of: answer)
        if request.headers[.connection]?.lowercased() == "close" { headers[.connection] = "close" }
        return Response(
            status: HTTPResponse.Status(code: answer.status), headers: headers,
            body: isHead ? ResponseBody() : ResponseBody(byteBuffer: ByteBuffer(bytes: answer.body))
        )
    }

    static func headers(of answer: HTTPAnswer) -> HTTPFields {
        var headers: HTTPFields = [
            .contentType: answer.contentType, .contentLength: "\(answer.body.count)",
            .cacheControl: "no-store", .xContentTypeOptions: "nosniff",
            .contentSecurityPolicy: "default-src 'none'; frame-ancestors 'none'",
            HTTPField.Name("Referrer-Policy")!: "no-referrer",
        ]
        for (name, value) in answer.headers {
            guard let name = HTTPField.Name(name) else { preconditionFailure("a bad header name") }
            headers[name] = value
        }
        return headers
    }

    private func answer(to request: Request, on channel: any Channel) async -> HTTPAnswer {
        var question: HTTPQuestion
        if hasAdmission {
            guard let admitted = await admittedQuestion(on: channel) else {
                // The connection has been closed meanwhile, and nobody reads this.
                return .text("the connection is closed", status: 503)
            }
            question = admitted
        } else {
            switch self.question(in: request.head) {
            case .success(let asked): question = asked
            case .failure(let refusal): return formatted(refusal.answer)
            }
        }
        let bytesMax = question.bodyBytesMax ?? bodyBytesMax
        switch await body(of: request, bytesMax) {
        case .whole(let body): question.body = body
        case .tooLong: return formatted(tooLong(bytesMax))
        case .broken:
            var answer = HTTPAnswer.text(
                "the body does not come as its headers announce it", status: 400)
            answer.headers["Connection"] = "close"
            return formatted(answer)
        }
        return await answer(question)
    }

    /// The question whose head `ConnectionBounds` has passed on last.
    private func admittedQuestion(on channel: any Channel) async -> HTTPQuestion? {
        let take = { @Sendable () throws -> HTTPQuestion? in
            try channel.pipeline.syncOperations.handler(type: ConnectionBounds.self)
                .takeAdmitted()
        }
        if channel.eventLoop.inEventLoop { return try? take() }
        return try? await channel.eventLoop.submit(take).get()
    }

    func formatted(_ refusal: HTTPAnswer) -> HTTPAnswer { formatRefusal?(refusal) ?? refusal }

    /// Refuses a body of which the rest is not read.
    func tooLong(_ bytesMax: Int) -> HTTPAnswer {
        var answer = HTTPAnswer.text("the body is longer than \(bytesMax) bytes", status: 413)
        answer.headers["Connection"] = "close"
        return answer
    }

    /// What the listener answers by itself.
    struct Refusal: Error {
        let answer: HTTPAnswer
        init(_ answer: HTTPAnswer) { self.answer = answer }
    }

    /// What a request asks for, apart from its body.
    func question(in head: HTTPRequest) -> Result<HTTPQuestion, Refusal> {
        let uri = URI(head.path ?? "")
        switch access.refusal(of: head, path: uri.path) {
        case .unauthorized:
            var answer = HTTPAnswer.text("a bearer token is needed", status: 401)
            answer.headers["WWW-Authenticate"] = "Bearer"
            return .failure(Refusal(answer))
        case .wrongHost:
            return .failure(
                Refusal(.text("this listener answers to localhost only", status: 421)))
        case .otherSite:
            return .failure(
                Refusal(.text("this listener answers no page of another site", status: 403)))
        case nil: break
        }
        let method =
            head.method == .head ? .get : HTTPQuestion.Method(rawValue: head.method.rawValue)
        guard passesAllMethods || [.get, .put, .post, .delete].contains(method) else {
            return .failure(Refusal(.text("this method is not allowed here", status: 405)))
        }
        guard Self.isUTF8(uri.query ?? "") else {
            return .failure(
                Refusal(
                    .text("the query is not UTF-8; percent-encode the bytes of UTF-8", status: 400))
            )
        }
        var query: [String: String] = [:]
        for (name, value) in uri.queryParameters where query[String(name)] == nil {
            query[String(name)] = String(value)
        }
        var question = HTTPQuestion(
            method: method, path: uri.path, query: query, headers: HTTPHeaders(head.headerFields))
        question.rawQuery = uri.query ?? ""
        return .success(question)
    }

    /// Whether a query is UTF-8 once its escapes are decoded. Hummingbird replaces what is not, and the
    /// question would be about another name.
    private static func isUTF8(_ query: String) -> Bool {
        // NIO replaces what is not UTF-8 before it is encoded.
        if query.unicodeScalars.contains("\u{FFFD}") { return false }
        var bytes: [UInt8] = []
        var rest = query.utf8[...]
        while let byte = rest.popFirst() {
            let digits = String(rest.prefix(2)) ?? ""
            let escaped = digits.utf8.count == 2 ? UInt8(digits, radix: 16) : nil
            if byte == UInt8(ascii: "%"), let escaped {
                bytes.append(escaped)
                rest = rest.dropFirst(2)
            } else {
                bytes.append(byte)
            }
        }
        return String(validating: bytes, as: UTF8.self) != nil
    }

    /// The bytes of a request's body as its headers say; nil if they do not.
    static func announcedBytes(_ headers: HTTPFields) -> Int? {
        if headers[.transferEncoding] != nil { return nil }
        return headers[.contentLength].map { Int($0) ?? .max } ?? 0
    }

    /// Whether a request says by its headers that its body is too long.
    static func isTooLong(_ headers: HTTPFields, _ bodyBytesMax: Int) -> Bool {
        announcedBytes(headers).map { $0 > bodyBytesMax } ?? (bodyBytesMax == 0)
    }

    private enum Body {
        case whole([UInt8]), tooLong
        /// Its framing is wrong, or the connection has ended in it.
        case broken
    }

    /// The request's body. One that says itself that it is too long is not waited for.
    private func body(of request: Request, _ bytesMax: Int) async -> Body {
        guard !Self.isTooLong(request.headers, bytesMax) else { return .tooLong }
        guard bytesMax > 0 else { return .whole([]) }
        do {
            let body = try await request.body.collect(upTo: bytesMax)
            return .whole(Array(body.readableBytesView))
        } catch {
            return error is NIOTooManyBytesError ? .tooLong : .broken
        }
    }
}
