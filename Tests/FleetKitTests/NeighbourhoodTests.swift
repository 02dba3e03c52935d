// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import PushModel
import RecordFormats
import Testing

@testable import FleetKit

@Suite struct `Demo neighbourhood` {
    private let neighbourhood = Neighbourhood(installations: 301)

    @Test func `audiences are what the registrations say`() {
        #expect(neighbourhood.installations == 300)
        var shown: [String: Set<[UInt8]>] = [:]
        for installation in 0..<neighbourhood.installations {
            let drafts = neighbourhood.registrations(
                of: installation, at: WallTime(milliseconds: 1))
            for target in drafts.flatMap(\.targets) {
                for subject in target.shows.flatMap(\.subjects) {
                    shown[subject, default: []].insert(target.token ?? [])
                }
            }
        }
        #expect(shown.count == neighbourhood.subjectCount)
        for number in 0..<neighbourhood.subjectCount {
            let audience = neighbourhood.audience(ofSubject: number).map(neighbourhood.token)
            #expect(Set(audience) == shown[neighbourhood.subject(number)])
            #expect(Set(audience).count == audience.count)
        }
    }

    @Test func `a street is shown by every control`() {
        let neighbourhood = Neighbourhood(installations: 30, hasStreet: true)
        var tokens: [[UInt8]] = []
        for installation in 0..<30 {
            for target in neighbourhood.registrations(of: installation, at: .now).flatMap(\.targets)
            where target.shows.contains(where: { $0.subjects == ["street"] }) {
                tokens.append(target.token ?? [])
            }
        }
        let audience = neighbourhood.audience(ofSubject: neighbourhood.street)
        #expect(audience.map(neighbourhood.token) == tokens && tokens.count == 30)
        #expect(neighbourhood.subject(neighbourhood.street) == "street")
    }

    @Test func `a subject's name is its number`() {
        for number in [0, 1, 99, 100, 199] {
            #expect(neighbourhood.subjectNumber(neighbourhood.subject(number)) == number)
        }
        for name in ["door-100", "door", "lamp--1", "gate-1", ""] {
            #expect(neighbourhood.subjectNumber(name) == nil)
        }
    }

    @Test func `tokens differ in their first eight bytes, and few are gone`() {
        let tokens = (0..<neighbourhood.tokenCount).map(neighbourhood.token)
        #expect(tokens.allSatisfy { $0.count == 32 })
        #expect(Set(tokens.map { Array($0.prefix(8)) }).count == tokens.count)
        let gone = tokens.filter { $0.starts(with: [0xDE, 0xAD]) }.count
        #expect((1...12).contains(gone))
    }

    @Test func `the simulator's addresses are complete or none`() {
        let text = "production 127.0.0.1:4430\nca /x/ca.pem\ncontrol 127.0.0.1:4431\n"
        let addresses = SimulatorAddresses(text)
        #expect(addresses.host == "127.0.0.1")
        #expect(addresses.port == 4430)
        #expect(addresses.controlPort == 4431)
        #expect(addresses.isComplete)
        #expect(!SimulatorAddresses("production 127.0.0.1:4430\n").isComplete)
        #expect(!SimulatorAddresses(String(text.dropLast())).isComplete)
    }
}
