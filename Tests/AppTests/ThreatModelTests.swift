// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Foundation
internal import Testing

/// SECURITY.md names, for each threat, the tests that show its controls.
@Suite struct `The threat model in SECURITY.md` {
    struct Threat {
        let name: String
        var text: [Substring] = []
    }

    private static func threats() throws -> [Threat] {
        var threats: [Threat] = []
        for line in try Repository.text("SECURITY.md").split(separator: "\n") {
            if line.hasPrefix("### ") {
                threats.append(Threat(name: String(line.dropFirst(4))))
            } else if !threats.isEmpty {
                threats[threats.count - 1].text.append(line)
            }
        }
        return threats
    }

    @Test func `the threat model names tests that exist, each with its suite`() throws {
        let known = try Repository.tests()
        var named = 0
        for threat in try Self.threats() {
            for line in threat.text where line.hasPrefix("- `") {
                let parts = line.matches(of: /`([^`]+)`/).map { String($0.1) }
                try #require(parts.count == 2, "a line is - `suite` · `test`: \(line)")
                named += 1
                #expect(
                    known[parts[0]]?.contains(parts[1]) == true,
                    "no suite and test are called so: \(line)")
            }
        }
        #expect(named >= 60)
    }

    @Test func `the threat model says what is at stake and missing, and which tests show controls`()
        throws
    {
        let threats = try Self.threats()
        #expect(threats.count >= 14)
        #expect(Set(threats.map(\.name)).count == threats.count, "mutations name them by heading")
        for threat in threats {
            for part in ["**At stake.** ", "**Controls.** ", "**Missing.** "] {
                #expect(
                    threat.text.contains { $0.hasPrefix(part) }, "\(threat.name) has no \(part)")
            }
            #expect(
                threat.text.contains { $0.hasPrefix("- `") }, "\(threat.name) names no test")
        }
    }
}
