// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import PushModel
import Testing

@testable import Simdjson

@Suite struct `Contained bytes` {
    private func contains(_ text: [UInt8]) -> Bool {
        text.withUnsafeBytes { $0.contains("scale") }
    }

    @Test func `contained bytes are found at each place of texts of each length`() {
        let word = Array("scale".utf8)
        for length in 0...70 {
            let text = Array(repeating: UInt8(ascii: "s"), count: length)
            #expect(!contains(text), "\(length)")
            for place in 0...max(0, length - word.count) where length >= word.count {
                var with = text
                with.replaceSubrange(place..<place + word.count, with: word)
                #expect(contains(with), "\(place) of \(length)")
                // Cut off, it is not there.
                #expect(!contains(Array(with.prefix(place + 4))), "\(place) of \(length)")
            }
        }
    }

    @Test func `contained bytes are found as by a search letter by letter`() {
        var dice = SplitMix64(seed: 7)
        let letters = Array("scale".utf8)
        for _ in 0..<20_000 {
            let text = (0..<dice.next(below: 60)).map { _ in letters[Int(dice.next(below: 5))] }
            let isThere = String(decoding: text, as: UTF8.self).contains("scale")
            #expect(contains(text) == isThere, "\(text)")
        }
    }
}
