// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import NIOHTTP1

/// The headers of a request. Names are compared without regard to case.
package struct HTTPHeaders: Sendable {
    private let headers: NIOHTTP1.HTTPHeaders

    init(_ headers: NIOHTTP1.HTTPHeaders) { self.headers = headers }

    package init(_ list: [(name: String, value: String)] = []) {
        headers = NIOHTTP1.HTTPHeaders(list.map { ($0.name, $0.value) })
    }

    /// The values of all headers of this name, in their order, without white space around them.
    package func values(_ name: String) -> [String] { headers[name].map(Self.trimmed) }

    package subscript(name: String) -> String? { headers.first(name: name).map(Self.trimmed) }

    /// The values of all headers of this name as one; nil for none.
    func all(_ name: String) -> String? {
        let values = values(name)
        return values.isEmpty ? nil : values.joined(separator: ", ")
    }

    /// The bytes of the body that they announce; nil if they do not say how many.
    var announcedBytes: Int? {
        if headers.contains(name: "Transfer-Encoding") { return nil }
        return all("Content-Length").map { Int($0) ?? .max } ?? 0
    }

    private static func trimmed(_ value: String) -> String {
        func isSpace(_ byte: UInt8?) -> Bool { byte == 0x20 || byte == 0x09 }
        guard isSpace(value.utf8.first) || isSpace(value.utf8.last) else { return value }
        var bytes = value.utf8[...]
        while isSpace(bytes.first) { bytes.removeFirst() }
        while isSpace(bytes.last) { bytes.removeLast() }
        return String(Substring(bytes))
    }
}

/// A request to a listener, with its whole body.
package struct HTTPRequest: Sendable {
    /// Any method; a path says which it has.
    package struct Method: RawRepresentable, Hashable, Sendable {
        package let rawValue: String

        package init(rawValue: String) { self.rawValue = rawValue }

        package static let get = Method(rawValue: "GET")
        package static let put = Method(rawValue: "PUT")
        package static let post = Method(rawValue: "POST")
        package static let delete = Method(rawValue: "DELETE")
    }

    package var method: Method
    /// The path without the query, percent-encoded as the client sent it.
    package var path: String
    /// The decoded parameters of the query. If a name occurs twice, the first value counts.
    package var query: [String: String]
    /// The query as the client sent it, without the question mark; empty for none.
    package var rawQuery = ""
    package var headers: HTTPHeaders
    package var body: [UInt8]
    /// The address of somebody who has not shown who they are, as their shares are counted by; else empty.
    package var strangersAddress = ""
    /// What `HTTPListenerSettings.admission` has found; nil where there is none.
    package var admitted: (any Sendable)?

    /// Path and query as the client sent them.
    package var target: String { rawQuery.isEmpty ? path : "\(path)?\(rawQuery)" }

    /// The bytes of the body that the head announces; nil if it does not say how many.
    package var announcedBytes: Int? { headers.announcedBytes }

    /// The value of the `Accept` header; empty if there is none.
    package var accept: String { headers["accept"] ?? "" }

    package init(
        method: Method = .get, path: String, query: [String: String] = [:],
        headers: HTTPHeaders = HTTPHeaders(), body: [UInt8] = []
    ) {
        self.method = method
        self.path = path
        self.query = query
        self.headers = headers
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
    package static func notAllowed(but methods: [HTTPRequest.Method]) -> HTTPAnswer {
        let names = methods.map(\.rawValue)
        let verb = names.count == 1 ? "is" : "are"
        var answer = HTTPAnswer.text(
            "only \(names.joined(separator: " and ")) \(verb) allowed here", status: 405)
        answer.headers["Allow"] = names.joined(separator: ", ")
        return answer
    }

    package static let notFound = HTTPAnswer.text("nothing is served here", status: 404)
}
