// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import PushModel
import RecordFormats

/// The controls that the benchmarks push to, one for each token. Token `i` shows `door-i`,
/// `block-(i/10)` and `city-(i/1000)`, so that the word in a subject tells how many show it.
struct Town {
    static let app = "com.example.Home"
    static let teamID = "ABCDE12345"
    static let keyID = "FGHIJ67890"
    static let fanOuts = [1, 10, 1000]

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

    static func registration(_ number: Int, fanOuts: [Int]) -> RegistrationDraft {
        var draft = RegistrationDraft(
            environment: .production, app: app, installation: "\(number)", handler: "h")
        let subjects = fanOuts.map { subject(number / $0, fanOut: $0) }
        draft.targets = [
            RegistrationDraft.Target(
                tokenClass: .control, token: token(number),
                shows: [RegistrationDraft.Show(kind: "k", subjects: subjects)])
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
