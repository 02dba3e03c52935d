// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// An HTTP request to the registrar.
public struct Request: Hashable, Sendable {
    public var method: String
    public var url: URL
    public var headers: [String: String]
    public var body: Data?

    public init(method: String, url: URL, headers: [String: String] = [:], body: Data? = nil) {
        self.method = method
        self.url = url
        self.headers = headers
        self.body = body
    }

    /// As URLSession wants it; a background session takes the body from a file instead.
    package func urlRequest(timeout: TimeInterval, withBody: Bool = true) -> URLRequest {
        var request = URLRequest(url: url, timeoutInterval: timeout)
        request.httpMethod = method
        for (name, value) in headers { request.setValue(value, forHTTPHeaderField: name) }
        if withBody { request.httpBody = body }
        return request
    }
}

/// An HTTP response of the registrar, or of whatever stands before it.
public struct Response: Hashable, Sendable {
    public var status: Int
    /// Names in lower case.
    public var headers: [String: String]
    public var body: Data

    public init(status: Int, headers: [String: String] = [:], body: Data = Data()) {
        self.status = status
        self.headers = [:]
        for (name, value) in headers { self.headers[name.lowercased()] = value }
        self.body = body
    }

    package init(_ response: HTTPURLResponse, body: Data) {
        var headers: [String: String] = [:]
        for (name, value) in response.allHeaderFields {
            headers["\(name)"] = "\(value)"
        }
        self.init(status: response.statusCode, headers: headers, body: body)
    }
}

/// How a request gets to the registrar while the process runs. An error means that there was no
/// answer: the request is sent again later.
public protocol Transport: Sendable {
    func send(_ request: Request) async throws -> Response
}

public struct URLSessionTransport: Transport {
    let session: URLSession
    let timeout: TimeInterval

    /// - Parameter timeout: Seconds until an unanswered request is given up.
    public init(timeout: TimeInterval = 15) {
        // Answers name tokens' IDs and credentials: neither cookies nor caches keep them.
        session = URLSession(configuration: .ephemeral)
        self.timeout = timeout
    }

    public func send(_ request: Request) async throws -> Response {
        let (body, response) = try await session.data(for: request.urlRequest(timeout: timeout))
        guard let response = response as? HTTPURLResponse else {
            throw URLError(.badServerResponse)
        }
        return Response(response, body: body)
    }
}
