// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import ArgumentParser
internal import Dispatch
internal import Foundation
internal import LinuxIO
internal import OpenSSL

/// Starts and ends each program of this project: signals, crash report, command line, exit code.
package enum Program {
    /// Runs the command that the command line names.
    package static func main<Root: ParsableCommand>(_ root: Root.Type) {
        // Before anything that takes time.
        StopRequests.hold()
        CrashReport.install(program: root.programName, version: Version.line(of: root.programName))
        // Writing to a socket that the peer has closed must fail, not end the process.
        BrokenPipe.ignoreSignal()
        // A command ends when it has its answer, whatever its other threads are doing.
        OpenSSLLibrary.keepUntilExit()
        var command = parsed(root)
        if !(command is any StopsInOrder) { StopRequests.release() }
        // The simulators wait for SIGTERM and SIGINT on this thread, which is still the only one. A
        // main thread that runs tasks would take the signals instead: libdispatch parks it with
        // every signal unblocked.
        guard command is any AsyncParsableCommand else {
            do { try command.run() } catch { end(error, of: type(of: command), in: root) }
            ProcessEnd.leave(EXIT_SUCCESS)
        }
        Task {
            guard var command = parsed(root) as? any AsyncParsableCommand else { return }
            do { try await command.run() } catch { end(error, of: type(of: command), in: root) }
            ProcessEnd.leave(EXIT_SUCCESS)
        }
        dispatchMain()
    }

    private static func parsed<Root: ParsableCommand>(_ root: Root.Type) -> any ParsableCommand {
        do {
            return try root.parseAsRoot()
        } catch {
            root.exit(withError: error)
        }
    }

    /// Ends the process with the error's exit code, after a line about what went wrong.
    private static func end<Root: ParsableCommand>(
        _ error: any Error, of command: any ParsableCommand.Type, in root: Root.Type
    ) -> Never {
        switch error {
        // A wrong argument that a command finds when it runs is shown with that command's usage;
        // thrown from the root, it would be shown with the root's.
        case let slip as ValidationError:
            StandardError.write(
                "Error: \(slip.message)\nUsage: " + root.usageString(for: command))
            ProcessEnd.leave(ExitCode.validationFailure.rawValue)
        // Errors of the argument parser, and `help`, have exit codes of their own; to any other
        // error it assigns the code of a plain failure.
        case _ where error is ExitCode || root.exitCode(for: error) != .failure:
            let (text, code) = (root.fullMessage(for: error), root.exitCode(for: error))
            if !text.isEmpty, code.isSuccess { print(text) }
            if !text.isEmpty, !code.isSuccess { StandardError.write(text) }
            ProcessEnd.leave(code.rawValue)
        default:
            let failure = Failure(error)
            StandardError.write("\(root.programName): \(failure.message)")
            ProcessEnd.leave(failure.status.rawValue)
        }
    }
}

/// A command that takes over SIGTERM and SIGINT when it runs. Those that have come before it did are
/// held for it, in `StopRequests`; any other command is ended by them.
package protocol StopsInOrder: ParsableCommand {}

extension ParsableCommand {
    fileprivate static var programName: String { configuration.commandName ?? "\(self)" }
}

/// Writes lines for people to standard error.
package enum StandardError {
    package static func write(_ line: String) {
        // An error, such as a full disk or a closed pipe, must not end the program.
        try? FileHandle.standardError.write(contentsOf: Data((line + "\n").utf8))
    }
}
