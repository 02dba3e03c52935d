// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import LinuxIO
internal import PushModel
internal import RegistrarRules
internal import Synchronization

/// The rates of callers and of installations, as this replica has seen them.
final class CallerRates: Sendable {
    private struct State {
        var callers: RequestRates
        var installations: RequestRates
    }

    private let state: Mutex<State>

    init(ofCaller: Int, ofInstallation: Int) {
        state = Mutex(
            State(
                callers: RequestRates(perSecond: ofCaller, burst: 2 * ofCaller),
                installations: RequestRates(
                    perSecond: ofInstallation, burst: 10 * ofInstallation)))
    }

    /// - Returns: how long to wait; nil if the requests are allowed.
    func take(_ count: Int, of caller: String, _ key: InstallationKey?) -> Duration? {
        let now = MonotonicTime(nanoseconds: SystemClock.monotonicNanoseconds())
        return state.withLock { state in
            if count > 0, let wait = state.callers.take(count, of: caller, now: now) {
                return wait
            }
            guard let key else { return nil }
            return state.installations.take(of: Self.name(of: key), now: now)
        }
    }

    /// Takes so many records of an installation.
    /// - Returns: how long to wait; nil if they are allowed.
    func takeRecords(_ count: Int, of key: InstallationKey) -> Duration? {
        let now = MonotonicTime(nanoseconds: SystemClock.monotonicNanoseconds())
        return state.withLock { $0.installations.take(count, of: Self.name(of: key), now: now) }
    }

    private static func name(of key: InstallationKey) -> String {
        "\(key.environment.name)/\(key.app)/\(key.installation)"
    }
}

/// How many requests were answered, by method and status.
final class RequestTally: Sendable {
    struct Kind: Hashable {
        var method: String
        var status: Int
    }

    private let counts = Mutex<[Kind: UInt64]>([:])

    func count(_ method: String, status: Int) {
        counts.withLock { $0[Kind(method: method, status: status), default: 0] += 1 }
    }

    var all: [(kind: Kind, count: UInt64)] {
        counts.withLock { $0.map { ($0.key, $0.value) } }
            .sorted { ($0.0.method, $0.0.status) < ($1.0.method, $1.0.status) }
    }
}
