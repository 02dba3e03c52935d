// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import ArgumentParser
import Configuration
import Curl
import Entrypoint
import Foundation
import LinuxIO
import PushModel
import Worker

/// Asks workers at their admin listeners, all at once.
struct WorkerInquiry: Sendable {
    let urls: [String]
    let token: Secret?

    struct Answer<Value: Sendable>: Sendable {
        var url: String
        var value: Value?
        var failure: (any Error)?

        /// Whether the token is missing or wrong.
        var isRefused: Bool { (failure as? Failure)?.status == .configuration }

        /// Why the worker has not answered, in one line.
        var problem: String? {
            switch failure {
            case let failure as Failure: failure.message
            case let error as ValidationError: error.message
            case let other: other.map { "\($0)" }
            }
        }
    }

    private static let answerBytesMax = 16 << 20
    /// Each is asked by a thread of its own.
    private static let urlsMax = 256

    init(_ urls: [String], tokenFile: String?, _ configuration: Configuration?) throws {
        guard urls.count <= Self.urlsMax else {
            throw ValidationError("name at most \(Self.urlsMax) workers at a time")
        }
        token = try tokenFile.map(Self.token) ?? configuration?.admin.token
        self.urls = try urls.isEmpty ? [Self.ownURL(configuration)] : urls.map(Self.base)
    }

    private static func token(in file: String) throws -> Secret {
        do throws(Complaint) { return try Configuration.Admin.token(in: file) } catch {
            throw Failure(.configuration, "--token-file \(error.wrong); \(error.remedy)")
        }
    }

    private static func base(_ text: String) throws -> String {
        do throws(WorkerURL.Wrong) { return try WorkerURL(text).text } catch {
            throw ValidationError(error.message)
        }
    }

    private static func ownURL(_ configuration: Configuration?) throws -> String {
        guard let configuration else { return "http://127.0.0.1:9465" }
        guard let port = configuration.admin.port, port != 0 else {
            throw Failure(
                .configuration,
                "admin.port is not set, or lets the system choose: set it, or name the worker's URL"
            )
        }
        let host =
            switch configuration.admin.host {
            case "0.0.0.0": "127.0.0.1"
            case "::": "[::1]"
            case let host where host.contains(":") && !host.hasPrefix("["): "[\(host)]"
            case let host: host
            }
        return "http://\(host):\(port)"
    }

    /// - Parameters:
    ///   - body: sent with POST; nil sends GET.
    ///   - limit: for the whole answer of each.
    ///   - connectLimit: of it, for a connection.
    func ask<Value: Decodable & Sendable>(
        path: String, query: [(name: String, value: String)] = [], body: [UInt8]? = nil,
        within limit: Duration = .seconds(40), connecting connectLimit: Duration = .seconds(3),
        as type: Value.Type
    ) async -> [Answer<Value>] {
        var components = URLComponents()
        components.queryItems = query.map { URLQueryItem(name: $0.name, value: $0.value) }
        // A plus sign would be read as a space.
        let text = components.percentEncodedQuery?.replacing("+", with: "%2B") ?? ""
        let suffix = path + (text.isEmpty ? "" : "?\(text)")
        @Sendable func exchange(_ url: String) -> Answer<Value> {
            var exchange = HTTPExchange(url: url + suffix)
            exchange.body = body
            exchange.connectTimeout = connectLimit
            exchange.timeout = limit
            return ask(url, exchange)
        }
        return await withTaskGroup(of: (Int, Answer<Value>).self) { group in
            for (index, url) in urls.enumerated() {
                group.addTask { (index, await onThread(url) { exchange(url) }) }
            }
            var answers = urls.map { Answer<Value>(url: $0) }
            for await (index, answer) in group { answers[index] = answer }
            return answers
        }
    }

    private func onThread<Value>(
        _ url: String, _ ask: @escaping @Sendable () -> Answer<Value>
    ) async -> Answer<Value> {
        do throws(SystemError) {
            return try await AwaitedAnswer.onThread(named: "inquiry", ask)
        } catch {
            return Answer(
                url: url, failure: Failure(.internalError, "\(url) is not asked: \(error)"))
        }
    }

    private func ask<Value: Decodable & Sendable>(
        _ url: String, _ exchange: HTTPExchange
    ) -> Answer<Value> {
        var exchange = exchange
        exchange.headers = [("accept", "application/json"), ("content-type", "application/json")]
        if let token { exchange.headers.append(("authorization", "Bearer \(token.text)")) }
        exchange.answerBytesMax = Self.answerBytesMax
        do throws(ExchangeFailure) {
            let answer = try exchange.perform()
            // A status comes with 503, too: of a worker whose planner does not answer.
            if [200, 503].contains(answer.status),
                let value = ExplainJSON.value(Value.self, in: answer.body)
            {
                return Answer(url: url, value: value)
            }
            return Answer(url: url, failure: refusal(answer, of: url))
        } catch {
            return Answer(url: url, failure: Failure(.unavailable, problem(error, of: url)))
        }
    }

    private func problem(_ failure: ExchangeFailure, of url: String) -> String {
        let cause = failure.text.printable
        if let worker = try? WorkerURL(url) {
            if failure.kind == .handshake, url.hasPrefix("https://") {
                return worker.withoutTLS(cause)
            }
            if failure.kind == .lost { return worker.lost(cause) }
        }
        return "\(url): \(cause); check that the worker runs and that its admin.port is this one"
    }

    private func refusal(_ answer: HTTPExchange.Answer, of url: String) -> any Error {
        let text =
            String(decoding: answer.body.prefix(500), as: UTF8.self)
            .split(separator: "\n").first.map { String($0).printable }
            ?? "answers \(answer.status) without a reason: check that this is the admin.port of a worker"
        switch answer.status {
        case 401 where token == nil:
            return Failure(.configuration, "\(url) asks for a token: name its file (--token-file)")
        case 401:
            return Failure(
                .configuration, "\(url) refuses the token: take that of its admin.tokenFile")
        case 400, 413, 431: return ValidationError("\(url): \(text)")
        case 503: return Failure(.unavailable, "\(url): \(text)")
        default:
            return Failure(
                .unavailable,
                "\(url) answers \(answer.status) and not what was asked: check that this is the "
                    + "admin.port of a worker of the same version")
        }
    }

    /// Says which workers have not answered, and ends the command accordingly.
    static func report<Value>(_ answers: [Answer<Value>]) throws {
        guard let first = answers.compactMap(\.failure).first else { return }
        let problems = answers.compactMap(\.problem)
        guard problems.count == answers.count else {
            for problem in problems { StandardError.write(problem) }
            throw ExitCode.failure
        }
        for problem in problems.dropFirst() { StandardError.write(problem) }
        throw first
    }
}
