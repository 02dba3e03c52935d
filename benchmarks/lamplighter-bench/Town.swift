// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import PushModel
import RecordFormats

/// The controls that the benchmarks push to, one for each token. Token `i` shows `door-i`,
/// `block-(i/10)` and `city-(i/1000)`, so that the word in a subject tells how many show it. On
/// request the last of them show `everyone`, and beside the town there are phones, each of which is woken
/// by changes of `phone-i`, and the controls of another app, each of which shows `lamp-i`.
struct Town {
    static let app = "com.example.Home"
    static let teamID = "ABCDE12345"
    static let keyID = "FGHIJ67890"
    static let fanOuts = [1, 10, 1000]
    static let everyone = "everyone"
    /// Another team's app, whose events have a topic of their own.
    static let otherApp = "com.example.Lamps"

    let tokens: Int

    func subjects(fanOut: Int) -> Int { (tokens + fanOut - 1) / fanOut }

    static func subject(_ number: Int, fanOut: Int) -> String {
        switch fanOut {
        case 1: "door-\(number)"
        case 10: "block-\(number)"
        default: "city-\(number)"
        }
    }

    /// 32 bytes that look random, as Apple's do; the same for a number every time.
    static func token(_ number: Int) -> [UInt8] {
        var random = SplitMix64(seed: UInt64(number))
        return (0..<4).flatMap { _ in
            withUnsafeBytes(of: random.next()) { Array($0) }
        }
    }

    static func registration(
        _ number: Int, fanOuts: [Int], showsEveryone: Bool = false
    ) -> RegistrationDraft {
        var draft = RegistrationDraft(
            environment: .production, app: app, installation: "\(number)", handler: "h")
        let subjects =
            fanOuts.map { subject(number / $0, fanOut: $0) } + (showsEveryone ? [everyone] : [])
        draft.targets = [
            RegistrationDraft.Target(
                tokenClass: .control, token: token(number),
                shows: [RegistrationDraft.Show(kind: "k", subjects: subjects)])
        ]
        return draft
    }

    static func phone(_ number: Int) -> RegistrationDraft {
        var target = RegistrationDraft.Target(
            tokenClass: .device, token: token(number + 1 << 40),
            shows: [RegistrationDraft.Show(kind: nil, subjects: ["phone-\(number)"])])
        target.hearsChanges = true
        var draft = RegistrationDraft(
            environment: .production, app: app, installation: "p\(number)", handler: "h")
        draft.targets = [target]
        return draft
    }

    static func lamp(_ number: Int) -> RegistrationDraft {
        var draft = RegistrationDraft(
            environment: .production, app: otherApp, installation: "l\(number)", handler: "h")
        draft.targets = [
            RegistrationDraft.Target(
                tokenClass: .control, token: token(number + 2 << 40),
                shows: [RegistrationDraft.Show(kind: "k", subjects: ["lamp-\(number)"])])
        ]
        return draft
    }

    static func routing() -> RoutingTable {
        var routing = RoutingTable()
        routing.add(credential: "home", apps: [app], environments: [.production])
        return routing
    }

    /// Every number below `count` once, always in the same order for a seed.
    static func shuffled(_ count: Int, seed: UInt64 = 1) -> [Int32] {
        var random = SplitMix64(seed: seed)
        return (0..<Int32(count)).shuffled(using: &random)
    }
}
