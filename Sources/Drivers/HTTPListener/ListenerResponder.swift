// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import NIOHTTP1

/// Turns heads of HTTP into requests, and answers into responses with the headers that all of them
/// have.
struct ListenerResponder: Sendable {
    let access: AccessRule
    let passesAllMethods: Bool
    let formatRefusal: (@Sendable (HTTPAnswer) -> HTTPAnswer)?
    let answer: @Sendable (HTTPRequest) async -> HTTPAnswer

    static func headers(of answer: HTTPAnswer) -> NIOHTTP1.HTTPHeaders {
        var headers: NIOHTTP1.HTTPHeaders = [
            "Content-Type": answer.contentType, "Content-Length": "\(answer.body.count)",
            "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
            "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
            "Referrer-Policy": "no-referrer",
        ]
        for (name, value) in answer.headers { headers.replaceOrAdd(name: name, value: value) }
        headers.replaceOrAdd(name: "Date", value: HTTPDate.now)
        return headers
    }

    /// What the listener answers by itself.
    struct Refusal: Error {
        let answer: HTTPAnswer
    }

    /// - Parameter isLast: whether the connection ends with it.
    func refusal(_ reason: String, status: Int, isLast: Bool = false) -> HTTPAnswer {
        var answer = HTTPAnswer.text(reason, status: status)
        if status == 401 { answer.headers["WWW-Authenticate"] = "Bearer" }
        if let formatRefusal { answer = formatRefusal(answer) }
        if isLast { answer.headers["Connection"] = "close" }
        return answer
    }

    /// Refuses a body of which the rest is not read.
    func tooLong(_ bytesMax: Int) -> HTTPAnswer {
        refusal("the body is longer than \(bytesMax) bytes", status: 413, isLast: true)
    }

    /// What a request asks for, apart from its body.
    func request(in head: HTTPRequestHead) -> Result<HTTPRequest, Refusal> {
        func refuse(_ reason: String, status: Int) -> Result<HTTPRequest, Refusal> {
            .failure(Refusal(answer: refusal(reason, status: status)))
        }
        let target = RequestTarget(head.uri)
        switch access.refusal(of: head, path: target.path) {
        case .unauthorized: return refuse("a bearer token is needed", status: 401)
        case .wrongHost: return refuse("this listener answers to localhost only", status: 421)
        case .otherSite:
            return refuse("this listener answers no page of another site", status: 403)
        case nil: break
        }
        let method =
            head.method == .HEAD ? .get : HTTPRequest.Method(rawValue: head.method.rawValue)
        guard passesAllMethods || [.get, .put, .post, .delete].contains(method) else {
            return refuse("this method is not allowed here", status: 405)
        }
        guard target.hasQueryOfUTF8 else {
            return refuse(
                "the query is not UTF-8; percent-encode the bytes of UTF-8", status: 400)
        }
        var request = HTTPRequest(
            method: method, path: target.path, query: target.parameters,
            headers: HTTPHeaders(head.headers))
        request.rawQuery = target.query
        return .success(request)
    }
}
