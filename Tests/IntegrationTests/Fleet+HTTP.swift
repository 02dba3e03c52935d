// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import FleetKit
import Foundation
import Testing
import Worker

/// What a worker's listener answers.
struct ListenerAnswer {
    var status: Int
    var body: String
}

extension Fleet {
    /// The port of a worker's `admin` listener.
    func adminPort(of worker: FleetProcess) async throws -> Int {
        try await eventually("the admin listener") { worker.adminPort != nil }
        return try #require(worker.adminPort)
    }

    /// What a listener on this machine answers to a request of curl's.
    func request(
        _ path: String, port: Int, _ options: [String] = []
    ) async throws -> ListenerAnswer {
        let result = try await run(
            ["--silent", "--show-error", "--max-time", "600", "--write-out", "\n%{http_code}"]
                + options + ["http://127.0.0.1:\(port)\(path)"], program: "/usr/bin/curl")
        try #require(result.status == 0, "\(result.output)")
        let lines = result.output.split(separator: "\n", omittingEmptySubsequences: false)
        return ListenerAnswer(
            status: lines.last.flatMap { Int($0) } ?? 0,
            body: lines.dropLast().joined(separator: "\n"))
    }

    /// Asks until the answer is of this status and contains this.
    func request(
        _ path: String, port: Int, _ options: [String] = [], until status: Int, _ text: String
    ) async throws {
        let patience = Patience()
        while true {
            let answer = try await request(path, port: port, options)
            if answer.status == status, answer.body.contains(text) { return }
            try #require(!patience.isOver, "\(path): \(answer)")
            try await Task.sleep(for: .milliseconds(50))
        }
    }

    // MARK: lamplighter status

    /// What a worker answers operators with is less urgent than its pushes, and has no turn for
    /// seconds on a busy machine.
    static let patiently = ["--timeout", "600s"]

    func status(of worker: FleetProcess, _ options: [String] = []) async throws -> CommandResult {
        let port = try await adminPort(of: worker)
        return try await run(
            ["status", "http://127.0.0.1:\(port)"] + Self.patiently + options)
    }

    /// Waits until each running worker has partitions of `deferred`, and all are some worker's.
    func isDividedAmongWorkers() async throws {
        let patience = Patience()
        while true {
            var counts: [Int] = []
            for worker in workers where worker.isRunning {
                let report = try await statusReport(of: worker)
                let partitions = report?.partitions ?? []
                counts.append(partitions.count { $0.topic == topics.deferred })
            }
            let isDivided = counts.reduce(0, +) == Int(FleetTopics.partitionsEach)
            if isDivided, counts.allSatisfy({ $0 > 0 }) { return }
            try #require(!patience.isOver, "partitions of workers: \(counts)")
            try await Task.sleep(for: Self.betweenStatuses)
        }
    }

    /// What the worker answers to the command, without it: to be asked for often, since the command
    /// takes a quarter of a second of a core to start. Nil before the worker has a status.
    func statusReport(of worker: FleetProcess) async throws -> StatusReport? {
        let answer = try await request("/status", port: adminPort(of: worker))
        guard answer.status == 200 else { return nil }
        let report: StatusReport = try #require(
            StatusReport(json: Array(answer.body.utf8)), "\(answer)")
        return report
    }

    /// What the command would print.
    func statusText(of worker: FleetProcess) async throws -> String {
        try await statusReport(of: worker)?.lines.joined(separator: "\n") ?? ""
    }

    /// A worker answers with a status of the last second at most.
    private static let betweenStatuses = Duration.milliseconds(200)

    /// Waits until the command says this of the worker's status.
    func statusSays(
        _ text: String, of worker: FleetProcess, within limit: Duration = .seconds(60),
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let patience = Patience(limit)
        while true {
            var output = try await statusText(of: worker)
            if output.contains(text) {
                output = try await status(of: worker).output
                if output.contains(text) { return }
            }
            try #require(
                !patience.isOver, "no '\(text)' in\n\(output)", sourceLocation: sourceLocation)
            try await Task.sleep(for: Self.betweenStatuses)
        }
    }
}
