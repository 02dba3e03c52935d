// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Dispatch
internal import Foundation
internal import Glibc
package import LinuxIO
internal import Synchronization

/// A process of a fleet or of a test, with its output in a file. It ends with this process, however
/// that ends, and when this object is released.
package final class FleetProcess: Sendable {
    package let name: String
    /// The path of the file with its output.
    package let log: String
    private let child: ChildProcess

    /// - Parameters:
    ///   - program: the path of the program.
    ///   - variables: environment variables, in addition to those of this process without the
    ///     prefix `LAMPLIGHTER_`.
    ///   - log: the path of a file that both streams are appended to.
    ///   - errors: the path of another file for standard error.
    ///   - input: the text of standard input; nil for a pipe that `say` writes to.
    package init(
        _ name: String, program: String, arguments: [String], variables: [String: String] = [:],
        log: String, errors: String? = nil, input: String? = nil
    ) throws {
        self.name = name
        self.log = log
        let inputFile = input.map { _ in log + ".input" }
        if let input, let inputFile {
            try input.write(toFile: inputFile, atomically: false, encoding: .utf8)
        }
        let environment = Self.environment.merging(variables) { $1 }.map { "\($0)=\($1)" }
        child = try ParentThread.run {
            try ChildProcess(
                executable: program, arguments: arguments, environment: environment, output: log,
                errors: errors, input: inputFile)
        }
        KeptLogs.keep(log, of: name)
        if let errors { KeptLogs.keep(errors, of: name) }
        // The file is open and no longer needs its name.
        if let inputFile { try? FileManager.default.removeItem(atPath: inputFile) }
    }

    private static let environment: [String: String] = {
        // Variables with this prefix are configuration, and a fleet has its own.
        var environment = ProcessInfo.processInfo.environment
            .filter { !$0.key.hasPrefix("LAMPLIGHTER_") }
        // A crash of one of our programs should leave a stack trace.
        environment["SWIFT_BACKTRACE"] = environment["SWIFT_BACKTRACE"] ?? "enable=yes"
        return environment
    }()

    package var identifier: Int32 { child.identifier }

    /// How the process has ended; nil while it is running.
    package var ending: ChildProcess.Ending? { child.poll() }

    package var isRunning: Bool { ending == nil }

    package func signal(_ number: Int32) { child.signal(number) }

    /// Writes a line to the process's standard input; false if that fails.
    @discardableResult
    package func say(_ line: String) -> Bool { child.say(line) }

    /// Everything that the process has written to its log so far.
    package var output: String { (try? String(contentsOfFile: log, encoding: .utf8)) ?? "" }

    /// Of a worker: the port that its probes and metrics are on, once it listens.
    package var healthPort: Int? { WorkerLog.healthPort(in: output) }

    /// Of a worker: the port that it answers operators on, once it listens.
    package var adminPort: Int? { WorkerLog.adminPort(in: output) }

    /// The important lines of its log, for the message of a failure.
    package var excerpt: String { "--- \(name)\n\(LogExcerpt.block(of: output))" }

    /// Waits for the process to end, and kills it if it does not end in time.
    /// - Returns: the exit code, or minus the signal that ended it.
    package func finish(within limit: Duration = .seconds(60)) async throws -> Int32 {
        do {
            try await waitUntil("\(name) to end", within: limit) { !isRunning }
        } catch {
            signal(SIGKILL)
            throw Timeout(description: "\(error)\n\(excerpt)")
        }
        switch ending {
        case .exited(let code): return code
        case .killed(let signal): return -signal
        case nil: preconditionFailure("a process that has ended does not run: \(name)")
        }
    }
}

extension ChildProcess.Ending {
    /// The ending as text that completes "the worker has …".
    package var words: String {
        switch self {
        case .exited(let status): "exited with \(status)"
        case .killed(let signal): "been ended by signal \(signal)"
        }
    }
}

/// The thread that starts all processes. The kernel ends a child together with the thread that
/// started it, and the threads of the cooperative pool come and go.
private enum ParentThread {
    private static let jobs = Mutex<[@Sendable () -> Void]>([])
    private static let jobsWaiting = DispatchSemaphore(value: 0)

    private static let isRunning: Bool = {
        let thread: Void? = try? NamedThread.detach(name: "parent") {
            while true {
                jobsWaiting.wait()
                let job = jobs.withLock { $0.removeFirst() }
                job()
            }
        }
        return thread != nil
    }()

    static func run<Made: Sendable>(_ body: @escaping @Sendable () throws -> Made) throws -> Made {
        guard isRunning else { throw FleetError(description: "no thread can be started") }
        let made = MadeBox<Made>()
        let isDone = DispatchSemaphore(value: 0)
        jobs.withLock {
            $0.append {
                let result = Result { try body() }
                made.value.withLock { $0 = result }
                isDone.signal()
            }
        }
        jobsWaiting.signal()
        isDone.wait()
        return try made.value.withLock { $0! }.get()
    }
}

private final class MadeBox<Made: Sendable>: Sendable {
    let value = Mutex<Result<Made, any Error>?>(nil)
}

/// Why a fleet cannot go on.
package struct FleetError: Error, CustomStringConvertible {
    package let description: String

    package init(description: String) { self.description = description }
}
