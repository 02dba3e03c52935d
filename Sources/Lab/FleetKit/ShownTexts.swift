// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Curl
internal import Foundation
internal import PushModel

/// A text that a program shows, such as a log or a page.
package struct ShownText: Sendable {
    package var name: String
    package var bytes: [UInt8]

    package init(_ name: String, _ bytes: [UInt8]) {
        self.name = name
        self.bytes = bytes
    }

    /// A sentence for each secret in the text, which says where it is, and not what it is.
    package func leaks(_ search: SecretSearch) -> [String] {
        search.findings(in: bytes).map { "\(name), line \($0.line), shows \($0.kind.rawValue)" }
    }
}

/// What a fleet shows to those who read its logs, metrics, pages, arguments or dead letters. None of
/// them is told a secret.
extension ProcessFleet {
    /// The arguments of the workers, which every user of their machine can read.
    package func arguments() -> [ShownText] {
        workers.compactMap { worker in
            let path = "/proc/\(worker.process.identifier)/cmdline"
            guard let data = FileManager.default.contents(atPath: path) else { return nil }
            return ShownText("the arguments of \(worker.process.name)", Array(data))
        }
    }

    /// The logs of the workers, those that have ended included.
    package func workerLogs() throws -> [ShownText] {
        try FileManager.default.contentsOfDirectory(atPath: plan.directory).sorted()
            .filter { $0.wholeMatch(of: /worker-\d+\.log/) != nil }
            .map { name in
                ShownText(name, Array(try Data(contentsOf: URL(filePath: path(name)))))
            }
    }

    /// The dead letters, without the device tokens that they name as the ones to send to again.
    package func deadLetters() throws -> [ShownText] {
        try TopicLog(topic: plan.topics.name(of: "dead-letters"), bootstrap: bootstrap)
            .readToEndBlocking()
            .map { record in
                let value = (record.value ?? "").replacing(/"token":"[0-9a-f]*"/, with: "")
                return ShownText(
                    "dead letter \(record.partition)/\(record.offset)",
                    Array("\(record.key ?? "")\n\(value)".utf8))
            }
    }

    // MARK: Pages

    /// The pages of the workers' listeners, each once.
    /// - Throws: if a worker does not answer, even when asked for a while.
    package func pages() throws -> [ShownText] {
        try workers.flatMap { worker in
            try Self.healthPaths.map { try page($0, of: worker.process, for: \.healthPort) }
                + Self.adminPaths.map { try page($0, of: worker.process, for: \.adminPort) }
        }
    }

    private static let healthPaths = ["/metrics", "/livez", "/readyz", "/startupz"]
    private static let adminPaths = [
        "/log-level", "/", "/status", "/explain?app=\(Neighbourhood.app)&subject=door-1",
        "/explain?app=\(Neighbourhood.app)&installation=phone-0",
    ]
    /// Paths that every worker answers, so that what has been searched was a page.
    private static let certainPaths = ["/metrics", "/log-level"]
    private static let pageBytesMax = 32 << 20
    /// How long a worker that has just started may take to listen.
    private static let patience = Duration.seconds(20)

    private func page(
        _ path: String, of worker: FleetProcess, for port: (FleetProcess) -> Int?
    ) throws -> ShownText {
        let name = "\(path) of \(worker.name)"
        let deadline = ContinuousClock.now + Self.patience
        while true {
            let problem: String
            do throws(ExchangeFailure) {
                // A worker that has been replaced has another port.
                let answer = try exchange(path, port: port(worker) ?? 0).perform()
                if answer.status == 200 || !Self.certainPaths.contains(path) {
                    return ShownText(name, answer.body)
                }
                problem = "status \(answer.status)"
            } catch {
                problem = error.text
            }
            guard ContinuousClock.now < deadline else {
                throw FleetError(description: "\(name) cannot be read: \(problem)")
            }
            Thread.sleep(forTimeInterval: 0.1)
        }
    }

    private func exchange(_ path: String, port: Int) -> HTTPExchange {
        var exchange = HTTPExchange(url: "http://127.0.0.1:\(port)\(path)")
        if let token = plan.configuration.operatorToken {
            exchange.headers = [("authorization", "Bearer \(token)")]
        }
        exchange.answerBytesMax = Self.pageBytesMax
        return exchange
    }
}

extension SecretSearch {
    /// Looks for the secrets of a fleet: its signing keys, its passwords, and the device tokens of
    /// all registrations ever written.
    package init(of fleet: ProcessFleet) throws {
        self.init()
        let configuration = fleet.plan.configuration
        for credential in configuration.credentials {
            let file = URL(filePath: credential.keyFile, relativeTo: URL(filePath: fleet.path("")))
            add(signingKey: try String(contentsOf: file, encoding: .utf8))
        }
        for name in ["sasl.password", "ssl.key.password"] {
            if let password = configuration.properties[name] { add(password: password) }
        }
        if let token = configuration.operatorToken { add(password: token) }
        let registrations = try TopicLog(
            topic: configuration.topics.name(of: "registrations"), bootstrap: fleet.bootstrap)
        for record in try registrations.readToEndBlocking() {
            for match in (record.value ?? "").matches(of: /"token":"([0-9a-f]{16,})"/) {
                if let token = Hexadecimal.decode(String(match.1)) { add(deviceToken: token) }
            }
        }
    }
}
