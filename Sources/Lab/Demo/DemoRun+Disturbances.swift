// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FleetKit
internal import Foundation
internal import LinuxIO

extension DemoRun {
    func press(_ key: UInt8) throws {
        if key == UInt8(ascii: "q") {
            endKeys += 1
            return
        }
        let character = Character(UnicodeScalar(key))
        guard figures.phase == .running,
            let disturbance = Disturbance.allCases.first(where: { $0.key == character })
        else { return }
        // From now on the spectator controls the demo.
        figures.isScripted = false
        try perform(disturbance)
    }

    func perform(_ disturbance: Disturbance) throws {
        if let announcement = disturbance.announcement { say(announcement) }
        schedule.add(disturbance, now: .now)
        switch disturbance {
        case .flipDoor:
            if fleet.traffic?.say("flip") != true { say("the traffic does not take the flip") }
        case .killWorker: try killNextWorker()
        case .killRegistrar:
            try fleet.killRegistrar()
            say("kill -9 of the registrar; another is started, and phones try again until then")
        case .goAwayStorm, .stall, .serverErrors: break
        }
    }

    private func killNextWorker() throws {
        let index = nextVictim % fleet.workers.count
        nextVictim += 1
        let process = fleet.workers[index].process.identifier
        let t = SystemClock.wallNanoseconds()
        try fleet.killWorker(index)
        kills.write(Data("{\"t\":\(t),\"worker\":\(index + 1),\"process\":\(process)}\n".utf8))
        figures.kills += 1
        say("kill -9 of worker \(index + 1) (process \(process)); another is started")
    }
}
