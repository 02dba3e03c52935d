// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import RegistrarRules
import Testing

@Suite struct `A complete set` {
    static func named(_ names: String..., content: UInt64 = 1) -> [CompleteSet.Named] {
        names.map { CompleteSet.Named(keyPart: $0, partition: 0, content: content) }
    }

    static func stored(
        _ name: String, _ sequence: Int64?, _ tokenClass: RegistrationClass? = .controls,
        content: UInt64? = 1
    ) -> CompleteSet.Stored {
        CompleteSet.Stored(
            keyPart: name, partition: 0, tokenClass: tokenClass, sequence: sequence,
            content: content)
    }

    static func refusal(
        _ named: [CompleteSet.Named], _ stored: [CompleteSet.Stored], _ sequence: Int64?,
        handlersMax: Int = 64
    ) -> CompleteSet.Refusal? {
        do throws(CompleteSet.Refusal) {
            _ = try CompleteSet(
                named, replacing: stored, sequence: sequence, handlersMax: handlersMax)
            return nil
        } catch { return error }
    }

    @Test func `removes the controls that it does not name, and nothing else`() throws {
        let stored = [
            Self.stored("A", 3), Self.stored("Lights", 4), Self.stored("Board", 9, .widgets),
            Self.stored("unknown", 9, nil),
        ]
        let set = try CompleteSet(Self.named("A", "B"), replacing: stored, sequence: 5)
        #expect(set.sequence == 5 && set.removed == ["Lights"])
    }

    @Test func `is refused if any handler that it names is newer, whatever is known of its class`()
    {
        let named = Self.named("A", "B")
        for tokenClass in [RegistrationClass.controls, nil] {
            #expect(
                Self.refusal(named, [Self.stored("B", 10, tokenClass)], 5) == .stale(stored: 10))
        }
    }

    @Test func `is refused if a name belongs to another class`() {
        let stored = [Self.stored("B", 1, .widgets)]
        #expect(Self.refusal(Self.named("A", "B"), stored, 5) == .otherClass(.widgets))
    }

    @Test func `with the stored sequence is a retry if the targets are the same`() {
        let named = Self.named("A", "B")
        #expect(Self.refusal(named, [Self.stored("B", 5)], 5) == nil)
        #expect(Self.refusal(named, [Self.stored("B", 5, content: nil)], 5) == nil)
        #expect(Self.refusal(named, [Self.stored("B", 5, content: 2)], 5) == .stale(stored: 5))
    }

    @Test func `does not remove what is as new as itself`() {
        #expect(Self.refusal(Self.named("A"), [Self.stored("B", 5)], 5) == .stale(stored: 5))
        #expect(Self.refusal(Self.named("A"), [Self.stored("B", 4)], 5) == nil)
    }

    @Test func `without a sequence counts on from the newest`() throws {
        let stored = [
            Self.stored("A", 3), Self.stored("B", 7, nil), Self.stored("Board", 9, .widgets),
        ]
        #expect(try CompleteSet(Self.named("B"), replacing: stored, sequence: nil).sequence == 8)
        #expect(try CompleteSet(Self.named("B"), replacing: [], sequence: nil).sequence == 0)
        let last = [Self.stored("A", RegistrationArbiter.sequenceMax)]
        #expect(
            Self.refusal(Self.named("A"), last, nil)
                == .stale(stored: RegistrationArbiter.sequenceMax))
    }

    @Test func `is refused if a partition would have more handlers than it may`() {
        let stored = [Self.stored("A", 1), Self.stored("Board", 1, .widgets)]
        #expect(Self.refusal(Self.named("A", "B"), stored, 5, handlersMax: 3) == nil)
        #expect(Self.refusal(Self.named("A", "B"), stored, 5, handlersMax: 2) == .tooManyHandlers)
        #expect(Self.refusal(Self.named("A"), stored, 5, handlersMax: 1) == nil)
    }
}
