// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Testing

/// docs/delivery.md names a test for each promise.
@Suite struct `The promises of docs/delivery.md` {
    @Test func `the promises of docs/delivery.md each have tests that exist`() throws {
        let page = try Repository.text("docs/delivery.md")
        let known = Set(try Repository.tests().values.joined())
        var numbers: [Substring] = []
        var named = 0
        for line in page.split(separator: "\n") {
            if let match = line.firstMatch(of: #/^([0-9]+)\. /#) { numbers.append(match.1) }
            guard let match = line.firstMatch(of: #/^ +- `([^`]+)`$/#) else { continue }
            named += 1
            #expect(known.contains(String(match.1)), "no test is called so: \(match.1)")
        }
        #expect(numbers.count >= 27 && named >= numbers.count)
        #expect(Set(numbers).count == numbers.count, "mutations name a promise by its number")
    }
}
