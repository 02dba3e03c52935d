// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// What can be done to a running demo, by a key or by the script.
enum Disturbance: CaseIterable, Hashable, Sendable {
    case flipDoor, killWorker, goAwayStorm, stall, serverErrors

    var key: Character {
        switch self {
        case .flipDoor: "d"
        case .killWorker: "k"
        case .goAwayStorm: "g"
        case .stall: "s"
        case .serverErrors: "5"
        }
    }

    /// What is said of it when it happens; a flip and a kill are told by what comes of them.
    var announcement: String? {
        switch self {
        case .flipDoor, .killWorker: nil
        case .goAwayStorm: "GOAWAY storm: every connection told to go, 10 times in 2 s"
        case .stall: "APNs stalls: requests are read and not answered for 2 s"
        case .serverErrors: "APNs answers half of all pushes with 503 for 2 s"
        }
    }

    /// What the simulator is told, and how long after the beginning.
    var commands: [(after: Duration, command: String)] {
        switch self {
        case .flipDoor, .killWorker: []
        case .goAwayStorm: (0..<10).map { (.milliseconds($0 * 200), "goaway") }
        case .stall: [(.zero, "stall on"), (.seconds(2), "stall off")]
        case .serverErrors: [(.zero, "answer 503:ServiceUnavailable share 50% for 2s")]
        }
    }
}

/// What a demo does by itself: three kills, and one of each trouble with APNs between them, spread
/// over its duration; a flip of the drawn door every two seconds.
///
/// A trouble waits for a fleet that works, since one that is still recovering shows nothing; those
/// after it are put off by as much, and what is then due after the duration does not happen.
struct DisturbanceScript: Sendable {
    /// Both in ascending order.
    private var flips: [Duration]
    private var troubles: [(at: Duration, disturbance: Disturbance)]
    /// How long troubles have waited so far.
    private var delay = Duration.zero

    /// Shares of the duration. After the last there is time to recover.
    private static let course: [(Double, Disturbance)] = [
        (0.15, .killWorker), (0.30, .stall), (0.45, .killWorker), (0.60, .goAwayStorm),
        (0.70, .serverErrors), (0.80, .killWorker),
    ]

    init(duration: Duration) {
        flips = stride(from: 0.5, to: duration / .seconds(1), by: 2).map { .seconds($0) }
        troubles = Self.course.map { share, disturbance in
            (at: duration * share, disturbance: disturbance)
        }
    }

    /// What is due by then and was not handed out yet; of troubles, one at a time.
    /// - Parameters:
    ///   - elapsed: since the first accepted push.
    ///   - isWorking: whether pushes were accepted just now.
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

/// Commands for the simulator and when they are due.
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
