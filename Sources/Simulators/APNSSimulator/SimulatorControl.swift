// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Glibc
internal import LinuxIO
package import Logging
internal import Synchronization

/// Controls a running simulator by a script and a control socket, from a thread of its own. Every
/// line of a client is answered with one line: `ok`, the information asked for, or `error: …`.
package final class SimulatorControl: Sendable {
    private let simulator: APNSSimulator
    private let logger: Logger
    private let onQuit: @Sendable () -> Void
    private let waker = Waker()
    private let isEnding = Atomic<Bool>(false)
    private let thread = Mutex<ServingThread?>(nil)

    /// The address it listens on, with the actual port in place of 0; nil without a socket.
    package let address: ControlAddress?

    /// Opens the socket and starts the thread; `stop()` must follow. The simulator must be serving
    /// already.
    /// - Parameter onQuit: called on the control thread for `quit`, before its `ok` is sent.
    package init(
        _ simulator: APNSSimulator, address: ControlAddress? = nil, script: SimulatorScript? = nil,
        logger: Logger = Logger(label: "apns-simulator"), onQuit: @escaping @Sendable () -> Void
    ) throws(SimulatorError) {
        self.simulator = simulator
        self.logger = logger
        self.onQuit = onQuit
        let listener = try address.map { address throws(SimulatorError) in
            try ControlListener(address)
        }
        self.address = listener?.address
        do {
            let started = ServingThread(
                try NamedThread.start(name: "apns-control") { [self] in
                    serve(listener, ScriptClock(script, now: .now))
                })
            thread.withLock { $0 = started }
        } catch {
            throw SimulatorError(description: "the control thread does not start: \(error)")
        }
    }

    /// Ends the thread and every client, and removes the socket's path.
    package func stop() {
        isEnding.store(true, ordering: .releasing)
        waker.signal()
        if let thread = thread.withLock({ $0.take() }) { thread.join() }
    }

    /// Carries out a line.
    /// - Returns: the answer, without its line end.
    package func obey(_ line: String) -> String {
        do {
            switch try CommandLanguage.parse(line) {
            case .status: return simulator.counts.json
            case .help: return CommandLanguage.verbs.joined(separator: " ")
            case .quit: onQuit()
            case .perform(let command): try simulator.attempt(command)
            }
            return "ok"
        } catch {
            return "error: \(error)"
        }
    }

    private func serve(_ listener: ControlListener?, _ clock: consuming ScriptClock) {
        var clients: [ControlClient] = []
        while !isEnding.load(ordering: .acquiring) {
            let timeout = clock.sleepMax(now: .now)
            var waits = [pollfd(fd: waker.descriptor, events: Int16(POLLIN), revents: 0)]
            if let listener {
                waits.append(pollfd(fd: listener.descriptor, events: Int16(POLLIN), revents: 0))
            }
            waits += clients.map { pollfd(fd: $0.descriptor, events: Int16(POLLIN), revents: 0) }
            // EINTR means a turn without events.
            if poll(&waits, nfds_t(waits.count), timeout) < 0 { continue }
            for (index, client) in clients.enumerated()
            where waits[waits.count - clients.count + index].revents != 0 {
                client.read(answering: obey)
            }
            clients.removeAll { $0.hasEnded }
            if listener != nil, waits[1].revents != 0, let client = listener?.accept() {
                clients.append(client)
                if clients.count > ControlListener.clientsMax {
                    client.refuse("\(ControlListener.clientsMax) clients are served already")
                    clients.removeLast()
                }
            }
            let hasRequests = clock.awaitsRequest && simulator.counts.hasRequests
            for command in clock.due(now: .now, hasRequests: hasRequests) {
                let answer = obey(command)
                logger.info(
                    "script command",
                    metadata: ["command": "\(command)", "answer": "\(answer)"])
            }
        }
    }
}

/// Tells when each line of a script is due.
struct ScriptClock: ~Copyable {
    private struct Appointment {
        var at: Duration
        let entry: SimulatorScript.Entry
    }

    private var appointments: [Appointment]
    private var origin: ContinuousClock.Instant?
    /// Whether the script waits for the first request.
    var awaitsRequest: Bool { origin == nil && !appointments.isEmpty }

    init(_ script: SimulatorScript?, now: ContinuousClock.Instant) {
        appointments = (script?.entries ?? []).map { Appointment(at: $0.after, entry: $0) }
        origin = script?.origin == .firstRequest ? nil : now
    }

    /// The timeout for `poll` in milliseconds, or -1 for none.
    func sleepMax(now: ContinuousClock.Instant) -> Int32 {
        guard let next = appointments.map(\.at).min() else { return -1 }
        // Only the counts show that the first request has come, so they are polled.
        guard let origin else { return 5 }
        let rest = origin + next - now
        return rest <= .zero ? 0 : Int32(rest / .milliseconds(1)) + 1
    }

    /// The commands that are due, in the order of their times, then of the script. Periods that
    /// were missed entirely are skipped.
    mutating func due(now: ContinuousClock.Instant, hasRequests: Bool) -> [String] {
        if origin == nil && hasRequests { origin = now }
        guard let origin else { return [] }
        let elapsed = now - origin
        let due = appointments.filter { $0.at <= elapsed }.enumerated()
            .sorted { ($0.element.at, $0.offset) < ($1.element.at, $1.offset) }
            .map(\.element.entry.command)
        appointments = appointments.compactMap { appointment in
            guard appointment.at <= elapsed else { return appointment }
            guard let period = appointment.entry.period else { return nil }
            var next = appointment
            next.at += period
            if next.at <= elapsed { next.at = elapsed + period }
            return next
        }
        return due
    }
}
