// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import ArgumentParser
import Dispatch
import Foundation
import LinuxIO
import OpenSSL

@main
enum Program {
    static func main() {
        CrashReport.install(program: "lamplighter", version: Version.line)
        // A peer that closes its socket must be an error of that write, not the end of the process.
        BrokenPipe.ignoreSignal()
        // A command ends when its answer is there, whatever its threads are in the middle of.
        OpenSSLLibrary.keepUntilExit()
        var command = parsed()
        // The simulators wait for SIGTERM and SIGINT on this thread, which is the only one yet. A
        // main thread that runs tasks would take the signals from under them: libdispatch parks it
        // with every signal unblocked.
        guard command is any AsyncParsableCommand else {
            do { try command.run() } catch { end(error, of: command) }
            return
        }
        Task {
            guard var command = parsed() as? any AsyncParsableCommand else { return }
            do { try await command.run() } catch { end(error, of: command) }
            exit(EXIT_SUCCESS)
        }
        dispatchMain()
    }

    private static func parsed() -> any ParsableCommand {
        do {
            return try Lamplighter.parseAsRoot()
        } catch {
            Lamplighter.exit(withError: error)
        }
    }

    /// Ends the process. A slip that a command finds when it runs is shown with that command's own
    /// usage; thrown at the root, it would be shown with the root's.
    private static func end(_ error: any Error, of command: any ParsableCommand) -> Never {
        guard let slip = error as? ValidationError else { Lamplighter.exit(withError: error) }
        StandardError.write(
            "Error: \(slip.message)\nUsage: " + Lamplighter.usageString(for: type(of: command)))
        exit(ExitCode.validationFailure.rawValue)
    }
}
