// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Glibc
internal import LinuxIO
package import Logging
internal import PushModel

extension APNSSimulator {
    /// Serves until SIGTERM, SIGINT or `quit`. Prints one `environment host:port` line for each
    /// listener, one `ca file` and one `control address` line, and writes the same lines to
    /// `options.addressFile`.
    ///
    /// Must be called before the process has other threads: the two signals are blocked here, and
    /// threads started earlier would still receive them.
    package static func run(
        _ options: SimulatorOptions, control address: ControlAddress? = nil,
        script: SimulatorScript? = nil, logger: Logger = Logger(label: "apns-simulator")
    ) throws {
        var endings = sigset_t()
        sigemptyset(&endings)
        sigaddset(&endings, SIGTERM)
        sigaddset(&endings, SIGINT)
        // The serving threads inherit the blocked signals.
        StopRequests.count([SIGTERM, SIGINT])
        pthread_sigmask(SIG_BLOCK, &endings, nil)
        // One that has come before is one more of those that are waited for below.
        if StopRequests.received > 0 { kill(getpid(), SIGTERM) }

        let simulator = try APNSSimulator(options, logger: logger)
        try simulator.start()
        let control = try SimulatorControl(
            simulator, address: address, script: script, logger: logger,
            // The wait below handles this like any other end.
            onQuit: { kill(getpid(), SIGTERM) })
        var lines = options.listeners.compactMap { listener in
            simulator.port(of: listener.environment).map {
                "\(listener.environment.name) \(options.address):\($0)\n"
            }
        }
        if case .generated(let caFile?) = options.certificate { lines.append("ca \(caFile)\n") }
        if let address = control.address { lines.append("control \(address)\n") }
        let text = lines.joined()
        print(text, terminator: "")
        // A parent that reads through a pipe waits for the lines. (nil means every stream.)
        fflush(nil)
        if let addressFile = options.addressFile { try TextFile.write(text, to: addressFile) }

        var ending: CInt = 0
        sigwait(&endings, &ending)
        control.stop()
        simulator.stop()
    }
}
