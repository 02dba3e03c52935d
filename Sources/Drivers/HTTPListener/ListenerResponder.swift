// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import HTTPTypes
internal import Hummingbird
internal import HummingbirdCore
internal import NIOCore

/// Adapts a listener to Hummingbird: turns its requests into questions, and answers into responses
/// with the headers that all of them have.
struct ListenerResponder: HTTPResponder {
    typealias Context = BasicRequestContext

    let access: AccessRule
    let bodyBytesMax: Int
    let passesAllMethods: Bool
    let formatRefusal: (@Sendable (HTTPAnswer) -> HTTPAnswer)?
    let answer: @Sendable (HTTPQuestion) async -> HTTPAnswer

    func respond(to request: Request, context: Context) async throws -> Response {
        let answer = await answer(to: request)
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

    private func answer(to request: Request) async -> HTTPAnswer {
        switch await question(in: request) {
        case .success(let question): return await answer(question)
        case .failure(let refusal): return formatRefusal?(refusal.answer) ?? refusal.answer
        }
    }

    /// What the listener answers by itself.
    private struct Refusal: Error {
        let answer: HTTPAnswer
        init(_ answer: HTTPAnswer) { self.answer = answer }
    }

    private func question(in request: Request) async -> Result<HTTPQuestion, Refusal> {
        switch access.refusal(of: request.head, path: request.uri.path) {
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
            request.method == .head ? .get : HTTPQuestion.Method(rawValue: request.method.rawValue)
        guard passesAllMethods || [.get, .put, .post, .delete].contains(method) else {
            return .failure(Refusal(.text("this method is not allowed here", status: 405)))
        }
        guard let body = await body(of: request) else {
            var answer = HTTPAnswer.text(
                "the body is longer than \(bodyBytesMax) bytes", status: 413)
            // What is left of the body is not read.
            answer.headers["Connection"] = "close"
            return .failure(Refusal(answer))
        }
        guard Self.isUTF8(request.uri.query ?? "") else {
            return .failure(
                Refusal(
                    .text("the query is not UTF-8; percent-encode the bytes of UTF-8", status: 400))
            )
        }
        var query: [String: String] = [:]
        for (name, value) in request.uri.queryParameters where query[String(name)] == nil {
            query[String(name)] = String(value)
        }
        return .success(
            HTTPQuestion(
                method: method, path: request.uri.path, query: query,
                headers: HTTPHeaders(request.headers), body: body))
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

    /// Whether a request says by its headers that its body is too long.
    static func isTooLong(_ headers: HTTPFields, _ bodyBytesMax: Int) -> Bool {
        if let length = headers[.contentLength].flatMap({ Int($0) }) {
            return length > bodyBytesMax
        }
        return headers[.transferEncoding] != nil && bodyBytesMax == 0
    }

    /// The request's body; nil if it is too long. One that says so itself is not waited for.
    private func body(of request: Request) async -> [UInt8]? {
        guard !Self.isTooLong(request.headers, bodyBytesMax) else { return nil }
        guard bodyBytesMax > 0 else { return [] }
        guard let body = try? await request.body.collect(upTo: bodyBytesMax) else { return nil }
        return Array(body.readableBytesView)
    }
}
