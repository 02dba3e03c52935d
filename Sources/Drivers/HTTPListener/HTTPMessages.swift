// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// A request to a listener, with its whole body.
package struct HTTPQuestion: Sendable {
    package enum Method: String, Sendable {
        case get = "GET"
        case put = "PUT"
        case post = "POST"
        case delete = "DELETE"
    }

    package var method: Method
    /// The path without the query, percent-encoded as the client sent it.
    package var path: String
    /// The decoded parameters of the query. If a name occurs twice, the first value counts.
    package var query: [String: String]
    /// The value of the `Accept` header; empty if there is none.
    package var accept: String
    package var body: [UInt8]

    package init(
        method: Method = .get, path: String, query: [String: String] = [:], accept: String = "",
        body: [UInt8] = []
    ) {
        self.method = method
        self.path = path
        self.query = query
        self.accept = accept
        self.body = body
    }
}

/// A listener's answer. The listener adds the headers that all answers have.
package struct HTTPAnswer: Sendable, Equatable {
    package var status: Int
    package var contentType: String
    package var body: [UInt8]
    /// Further headers; one that all answers have is replaced.
    package var headers: [String: String] = [:]

    package init(status: Int = 200, contentType: String, body: [UInt8]) {
        self.status = status
        self.contentType = contentType
        self.body = body
    }

    /// Makes an answer of one line of text.
    package static func text(_ line: String, status: Int = 200) -> HTTPAnswer {
        HTTPAnswer(
            status: status, contentType: "text/plain; charset=utf-8", body: Array("\(line)\n".utf8))
    }

    package static func json(_ text: String, status: Int = 200) -> HTTPAnswer {
        HTTPAnswer(
            status: status, contentType: "application/json", body: Array("\(text)\n".utf8))
    }

    /// Refuses a method that the path does not have.
    package static func notAllowed(but methods: [HTTPQuestion.Method]) -> HTTPAnswer {
        let names = methods.map(\.rawValue)
        let verb = names.count == 1 ? "is" : "are"
        var answer = HTTPAnswer.text(
            "only \(names.joined(separator: " and ")) \(verb) allowed here", status: 405)
        answer.headers["Allow"] = names.joined(separator: ", ")
        return answer
    }

    package static let notFound = HTTPAnswer.text("nothing is served here", status: 404)
}
