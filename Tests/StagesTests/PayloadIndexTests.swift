// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Planning
internal import PushModel
internal import Testing

@Suite struct `The index of pushes with payloads` {
    @Test func `pushes with payloads are found by token and key, whatever else comes and goes`() {
        var dice = SplitMix64(seed: 3)
        var pushes = PayloadPushes(seed: 9)
        var model: [UInt32: (token: TokenID, key: UInt64)] = [:]
        for round in 0..<4000 {
            let (token, key) = (
                TokenID(rawValue: UInt32(dice.next(below: 5))), 1 + dice.next(below: 40)
            )
            let found = pushes.slot(token: token, key: key)
            let expected = model.first { $0.value == (token, key) }?.key
            #expect(found == expected)
            if let found {
                pushes.remove(found)
                model[found] = nil
            } else {
                let slot = (0..<300 as Range<UInt32>).first { model[$0] == nil }!
                pushes.insert(slot, token: token, key: key)
                model[slot] = (token, key)
            }
            if round % 200 == 199 {
                let gone = Set(pushes.removeAll(of: token))
                #expect(gone == Set(model.filter { $0.value.token == token }.keys))
                model = model.filter { $0.value.token != token }
            }
            if round % 20 == 0 { pushes.checkInvariants() }
        }
        for slot in model.keys { pushes.remove(slot) }
        let isEmpty = pushes.isEmpty
        #expect(isEmpty)
    }
}
