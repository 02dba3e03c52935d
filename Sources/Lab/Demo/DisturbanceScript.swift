// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// A disturbance of a running demo, caused by a key or by the script.
enum Disturbance: CaseIterable, Hashable, Sendable {
    case flipDoor, killWorker, killRegistrar, goAwayStorm, stall, serverErrors

    var key: Character {
        switch self {
        case .flipDoor: "d"
        case .killWorker: "k"
        case .killRegistrar: "r"
        case .goAwayStorm: "g"
        case .stall: "s"
        case .serverErrors: "5"
        }
    }

    /// The message when it happens; nil for a flip and a kill, whose effects are reported.
    var announcement: String? {
        switch self {
        case .flipDoor, .killWorker, .killRegistrar: nil
        case .goAwayStorm: "GOAWAY storm: every connection told to go, 10 times in 2 s"
        case .stall: "APNs stalls: requests are read and not answered for 2 s"
        case .serverErrors: "APNs answers half of all pushes with 503 for 2 s"
        }
    }

    /// The commands to the simulator, with their times after the beginning.
    var commands: [(after: Duration, command: String)] {
        switch self {
        case .flipDoor, .killWorker, .killRegistrar: []
        case .goAwayStorm: (0..<10).map { (.milliseconds($0 * 200), "goaway") }
        case .stall: [(.zero, "stall on"), (.seconds(2), "stall off")]
        case .serverErrors: [(.zero, "answer 503:ServiceUnavailable share 50% for 2s")]
        }
    }
}

/// The script of a demo: three kills with one of each trouble of APNs between them, spread over the
/// duration, and a flip of the drawn door every two seconds.
///
/// A trouble waits until the fleet is working, since one that is still recovering would hide its
/// effect. Later troubles are delayed by as much; those then due after the end are left out, but for the
/// first two kills.
struct DisturbanceScript: Sendable {
    /// The times of flips, in ascending order like `troubles`.
    private var flips: [Duration]
    private var troubles: [(at: Duration, disturbance: Disturbance)]
    /// How long troubles have waited so far.
    private var delay = Duration.zero

    /// The troubles, at shares of the duration. After the last one there is time to recover.
    private static let course: [(Double, Disturbance)] = [
        (0.15, .killWorker), (0.25, .killRegistrar), (0.35, .stall), (0.45, .killWorker),
        (0.60, .goAwayStorm), (0.70, .serverErrors), (0.80, .killWorker),
    ]

    init(duration: Duration) {
        flips = stride(from: 0.5, to: duration / .seconds(1), by: 2).map { .seconds($0) }
        troubles = Self.course.map { share, disturbance in
            (at: duration * share, disturbance: disturbance)
        }
    }

    /// Whether a worker or the registrar has not been killed yet, which every demo shows.
    var awaitsFirstKills: Bool { troubles.count > Self.course.count - 2 }

    /// The disturbances that are due and were not returned before; troubles one at a time.
    /// - Parameters:
    ///   - elapsed: the time since the first accepted push.
    ///   - isWorking: whether pushes have just been accepted.
    mutating func due(at elapsed: Duration, isWorking: Bool) -> [Disturbance] {
        let due = flips.prefix { $0 <= elapsed }
        flips.removeFirst(due.count)
        let flipped = due.map { _ in Disturbance.flipDoor }
        guard isWorking, let next = troubles.first, next.at + delay <= elapsed else {
            return flipped
        }
        troubles.removeFirst()
        delay = elapsed - next.at
        return flipped + [next.disturbance]
    }
}

/// The commands to the simulator that are due later.
struct CommandSchedule: Sendable {
    private var appointments: [(at: ContinuousClock.Instant, command: String)] = []

    mutating func add(_ disturbance: Disturbance, now: ContinuousClock.Instant) {
        appointments += disturbance.commands.map { (now + $0.after, $0.command) }
    }

    mutating func due(now: ContinuousClock.Instant) -> [String] {
        defer { appointments.removeAll { $0.at <= now } }
        return appointments.filter { $0.at <= now }.map(\.command)
    }
}
