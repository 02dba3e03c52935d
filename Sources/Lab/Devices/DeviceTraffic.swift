// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Foundation
internal import LinuxIO
internal import OpenSSL
package import PushModel
internal import Synchronization

/// Devices that register, change what they show, and count the pushes that reach them.
package final class DeviceTraffic: Sendable {
    package struct Options: Sendable {
        package var registrar: String
        package var key: String
        package var app: String
        package var environment = "production"
        package var caFile: String?
        package var devices: Int
        package var subjects: Int
        /// Changes a second, of all devices together.
        package var rate: Double
        package var duration: Duration
        package var seed: UInt64
        package var threads = 8
        /// The simulator's log, which is read at the end.
        package var log: String?

        package init(
            registrar: String, key: String, app: String, devices: Int, subjects: Int, rate: Double,
            duration: Duration, seed: UInt64
        ) {
            self.registrar = registrar
            self.key = key
            self.app = app
            self.devices = devices
            self.subjects = subjects
            self.rate = rate
            self.duration = duration
            self.seed = seed
        }
    }

    private struct State {
        var devices: [Device] = []
        var acknowledged = 0
        var retries = 0
        var failures: [String] = []
        var failed = 0
        var formers: [String: Int64] = [:]
        var mismatches: [String] = []
        var compared = 0
    }

    private let options: Options
    private let state = Mutex(State())

    /// Failures and differences that are named; all are counted.
    private static let namedMax = 10

    package init(_ options: Options) { self.options = options }

    /// Runs to the end of the duration, or until the process is told to stop; then compares what is
    /// registered, and reports.
    package func run(say: @escaping @Sendable (String) -> Void) throws -> DeviceReport {
        StopRequests.count()
        var random = SplitMix64(seed: options.seed)
        let now = WallTime(milliseconds: SystemClock.wallNanoseconds() / 1_000_000)
        let parts = (0..<options.threads).map { part in
            stride(from: part, to: options.devices, by: options.threads).map {
                Device(
                    number: $0, subjects: options.subjects, startingAt: now, using: &random)
            }
        }
        let ended = DispatchGroup()
        for (index, devices) in parts.enumerated() {
            let seed = random.next()
            ended.enter()
            try NamedThread.detach(name: "devices-\(index)") { [self] in
                work(devices, seed: seed)
                ended.leave()
            }
        }
        let end = ContinuousClock.now + options.duration
        while goesOn(until: end) {
            Thread.sleep(forTimeInterval: 0.5)
            let (acknowledged, retries) = state.withLock { ($0.acknowledged, $0.retries) }
            say("{\"acknowledged\":\(acknowledged),\"retries\":\(retries)}")
        }
        ended.wait()
        return report()
    }

    private func goesOn(until end: ContinuousClock.Instant) -> Bool {
        StopRequests.received == 0 && ContinuousClock.now < end
    }

    private func report() -> DeviceReport {
        let state = state.withLock { $0 }
        var pushes = DeliveredPushes()
        if let path = options.log, let log = FileManager.default.contents(atPath: path) {
            pushes.count(
                log: log, current: Set(state.devices.flatMap(\.tokens)), formers: state.formers)
        }
        let reached = state.devices.count { !pushes.tokens.isDisjoint(with: $0.tokens) }
        return DeviceReport(
            devices: state.devices.count, acknowledged: state.acknowledged, retries: state.retries,
            failed: state.failed, failures: state.failures, compared: state.compared,
            mismatches: state.mismatches, pushes: pushes.expected, late: pushes.late,
            unknown: pushes.unknown, reached: reached)
    }

    // MARK: A thread's devices

    private func work(_ devices: [Device], seed: UInt64) {
        var devices = devices
        var random = SplitMix64(seed: seed)
        let line = RegistrarLine(
            RegistrarLine.Settings(
                registrar: options.registrar, key: options.key, app: options.app,
                environment: options.environment, caFile: options.caFile))
        let end = ContinuousClock.now + options.duration
        var launched = 0
        while launched < devices.count, StopRequests.received == 0 {
            perform(.launch, &devices[launched], line, &random)
            launched += 1
        }
        // Of those that were never launched nothing is registered, and nothing is asked.
        devices.removeSubrange(launched...)
        let pause = Double(options.threads) / max(options.rate, 0.001)
        var next = ContinuousClock.now
        while goesOn(until: end), !devices.isEmpty {
            let index = devices.indices.randomElement(using: &random)!
            let change = Device.Change.allCases.randomElement(using: &random)!
            perform(change, &devices[index], line, &random)
            next = max(next + .seconds(pause), ContinuousClock.now - .seconds(1))
            let wait = min(next, end) - ContinuousClock.now
            if wait > .zero { Thread.sleep(forTimeInterval: min(wait / .seconds(1), 0.5)) }
        }
        for device in devices { compare(device, line) }
        let finished = devices
        let retries = line.retries
        state.withLock {
            $0.devices += finished
            $0.retries += retries
        }
    }

    private func perform(
        _ change: Device.Change, _ device: inout Device, _ line: RegistrarLine,
        _ random: inout SplitMix64
    ) {
        let formers = device.formerTokens.count
        for request in device.requests(for: change, using: &random) {
            device.sequence += 1
            let installation = request.installation ?? device.installation
            let result = line.send(request, of: installation, sequence: device.sequence)
            switch result {
            case .acknowledged(let sequence):
                device.sequence = max(device.sequence, sequence)
                state.withLock { $0.acknowledged += 1 }
            case .refused(let status, let detail):
                fail("\(request.method) \(request.path) was refused with \(status): \(detail)")
            case .gaveUp: fail("\(request.method) \(request.path) was not acknowledged in time")
            }
        }
        // A token of an installation that is gone still gets pushes, at any time: Apple would answer
        // 410.
        let goneAt = change == .reinstall ? Int64.max : SystemClock.wallNanoseconds()
        let gone = device.formerTokens[formers...]
        state.withLock { state in for token in gone { state.formers[token] = goneAt } }
    }

    private func fail(_ text: String) {
        state.withLock { state in
            state.failed += 1
            if state.failures.count < Self.namedMax { state.failures.append(text) }
        }
    }

    /// Asks the registrar what is registered of a device, and compares it with what it should be.
    private func compare(_ device: Device, _ line: RegistrarLine) {
        let expected = device.registered.mapValues { entries in
            Set(
                entries.map { entry in
                    let parts = entry.split(separator: " ")
                    guard let token = Hexadecimal.decode(String(parts[0])) else { return entry }
                    let id = Hexadecimal.encode(SHA256Digest.of(token).prefix(8))
                    return "\(id) \(parts[1])"
                })
        }.filter { !$0.value.isEmpty }
        let found = line.registered(of: device.installation)
        state.withLock { state in
            state.compared += 1
            if found != expected, state.mismatches.count < Self.namedMax {
                state.mismatches.append(device.installation)
            }
        }
    }
}

/// What became of the devices' registrations and pushes.
package struct DeviceReport: Sendable {
    package var devices: Int
    package var acknowledged: Int
    package var retries: Int
    package var failed: Int
    package var failures: [String]
    package var compared: Int
    /// Installations that are registered otherwise than the device shows.
    package var mismatches: [String]
    package var pushes: Int
    /// Pushes to tokens that a device had given up long before.
    package var late: Int
    package var unknown: Int
    /// Devices that some push has reached.
    package var reached: Int

    package var isGood: Bool { failed == 0 && mismatches.isEmpty && late == 0 }

    package var json: JSONText {
        func number(_ value: Int) -> JSONText { .literal("\(value)") }
        return .object([
            ("devices", number(devices)), ("acknowledged", number(acknowledged)),
            ("retries", number(retries)), ("failed", number(failed)),
            ("failures", .array(failures.map { .string($0) })), ("compared", number(compared)),
            ("mismatches", .array(mismatches.map { .string($0) })), ("pushes", number(pushes)),
            ("latePushes", number(late)), ("unknownPushes", number(unknown)),
            ("devicesReached", number(reached)),
        ])
    }
}
