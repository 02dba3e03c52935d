// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Glibc
package import Logging
internal import PushModel

extension APNSSimulator {
    /// Serves until SIGTERM or SIGINT. Prints one `environment host:port` line for each listener
    /// and one `ca file` line, and writes the same lines to `options.addressFile`.
    ///
    /// To be called before the process has other threads: the two signals are blocked here, and
    /// threads started earlier would still take them.
    package static func run(
        _ options: SimulatorOptions, logger: Logger = Logger(label: "apns-simulator")
    ) throws {
        var endings = sigset_t()
        sigemptyset(&endings)
        sigaddset(&endings, SIGTERM)
        sigaddset(&endings, SIGINT)
        // Before the serving threads, which inherit it.
        pthread_sigmask(SIG_BLOCK, &endings, nil)

        let simulator = try APNSSimulator(options, logger: logger)
        try simulator.start()
        var lines = options.listeners.compactMap { listener in
            simulator.port(of: listener.environment).map {
                "\(listener.environment.name) \(options.address):\($0)\n"
            }
        }
        if case .generated(let caFile?) = options.certificate { lines.append("ca \(caFile)\n") }
        let text = lines.joined()
        print(text, terminator: "")
        // nil: every stream; a parent that reads through a pipe waits for the lines.
        fflush(nil)
        if let addressFile = options.addressFile { try TextFile.write(text, to: addressFile) }

        var ending: CInt = 0
        sigwait(&endings, &ending)
        simulator.stop()
    }
}
