// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

@testable import Demo

extension DemoFigures {
    static var middle: DemoFigures {
        var figures = DemoFigures()
        figures.phase = .running
        figures.seconds = 12
        figures.duration = 40
        figures.installations = 3000
        figures.events = 1000
        figures.eventsPerSecond = 250
        figures.accepted = 1_234_567
        figures.acceptedPerSecond = 1700
        figures.refusals = [Outcome(name: "503 ServiceUnavailable", count: 7)]
        figures.inFlight = 3
        figures.p50ms = 3.5
        figures.p99ms = 1234
        figures.workers = [Worker(process: 1, seconds: 12), Worker(process: 2, seconds: 1)]
        figures.kills = 2
        figures.door = Door(isOpen: true, isLit: true, milliseconds: 2.6)
        figures.history = [0, 1, 1700, 900]
        figures.messages = ["0:10 kill -9 of worker 2 (process 3); another is started"]
        return figures
    }

    static var excessive: DemoFigures {
        var figures = DemoFigures.middle
        figures.seconds = .max
        figures.installations = .max
        figures.events = .max
        figures.eventsPerSecond = .max
        figures.accepted = .max
        figures.acceptedPerSecond = .max
        figures.refusals = (0..<9).map {
            Outcome(name: String(repeating: "R", count: 100), count: .max - $0)
        }
        figures.inFlight = .max
        figures.waiting = .max
        figures.lag = .max
        figures.p50ms = 1e12
        figures.p99ms = 1e12
        figures.workers = Array(repeating: Worker(process: .max, seconds: .max), count: 9)
        figures.history = Array(repeating: 1 << 40, count: 200)
        figures.messages = Array(repeating: String(repeating: "m", count: 200), count: 20)
        figures.result = String(repeating: "v", count: 200)
        return figures
    }
}
