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
        do {
            var command = try Lamplighter.parseAsRoot()
            // The simulators wait for SIGTERM and SIGINT on this thread, which is the only one yet.
            // A main thread that runs tasks would take the signals from under them: libdispatch
            // parks it with every signal unblocked.
            if !(command is any AsyncParsableCommand) {
                try command.run()
                return
            }
        } catch {
            Lamplighter.exit(withError: error)
        }
        Task {
            await Lamplighter.main(nil)
            exit(EXIT_SUCCESS)
        }
        dispatchMain()
    }
}
