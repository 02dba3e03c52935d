// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import PushModel
import RecordFormats
import Simdjson
import Testing

@testable import RegistrarRules

/// Records that others have written to the registrations topic.
@Suite struct `Foreign registrations` {
    private static func summary(_ json: String) -> RegistrationSummary? {
        var parser = JSONParser(bytesMax: 1 << 20)
        return Array(json.utf8).withUnsafeBytes { RegistrationSummary(value: $0, parser: &parser) }
    }

    @Test(
        arguments: [
            ("0", 0), ("17", 17), ("9007199254740991", 9_007_199_254_740_991),
            ("9007199254740992", nil), ("9223372036854775807", nil), ("-1", nil),
            ("-9223372036854775808", nil), ("18446744073709551615", nil), ("1.5", nil),
            ("\"7\"", nil),
            ("null", nil), ("[]", nil),
        ] as [(String, Int64?)])
    func `a sequence that no client may have is none`(text: String, sequence: Int64?) {
        let summary = Self.summary(#"{"v":1,"sequence":\#(text),"targets":[]}"#)
        #expect(summary != nil && summary?.sequence == sequence)
    }

    /// What a seed makes somebody write, ask and remove, of a few handlers.
    @Test(arguments: 0..<200 as Range<UInt64>)
    func `whatever others write, what is answered is a sequence that a client may have`(
        seed: UInt64
    ) throws {
        var random = SplitMix64(seed: seed)
        var arbiter = `A registration arbiter`.owner()
        let extremes: [Int64] = [
            .min, .min + 1, -1, 0, 1, (1 << 53) - 2, (1 << 53) - 1, 1 << 53, .max - 1, .max,
        ]
        var request: RegistrationArbiter.RequestID = 0
        for offset in 0..<60 as Range<Int64> {
            let handler = ["Garage", "default.controls", "Lamp"][Int(random.next() % 3)]
            let number = extremes[Int(random.next() % UInt64(extremes.count))]
            request += 1
            switch random.next() % 4 {
            case 0:
                let read = try #require(
                    Self.summary(#"{"v":1,"sequence":\#(number),"targets":[]}"#))
                arbiter.take(
                    RegistrationArbiter.Record(
                        partition: 0, offset: offset, key: `A registration arbiter`.key,
                        handler: handler, summary: random.next() % 5 == 0 ? nil : read,
                        owner: random.next() % 2 == 0 ? nil : `A registration arbiter`.former))
            case 1:
                // A caller's is checked before.
                let sequence = RegistrationArbiter.sequence(number)
                var put = `A registration arbiter`.put(sequence, handler: handler)
                put.content = random.next() % 2
                arbiter.put(put, in: 0, as: request, now: `A registration arbiter`.now)
            case 2:
                arbiter.remove(
                    RegistrationArbiter.Removal(
                        key: `A registration arbiter`.key, handler: handler,
                        below: RegistrationArbiter.sequence(number)), in: 0, as: request)
            default:
                let stored = try #require(arbiter.list(`A registration arbiter`.key, in: [0])).map {
                    CompleteSet.Stored(
                        keyPart: $0.handler, partition: 0, tokenClass: $0.summary.tokenClass,
                        sequence: $0.summary.sequence, content: $0.summary.content)
                }
                let set = try? CompleteSet(
                    [CompleteSet.Named(keyPart: handler, partition: 0, content: 1)],
                    replacing: stored, sequence: nil)
                if let set { #expect(RegistrationArbiter.sequence(set.sequence) != nil) }
            }
            let (writes, answers) = `A registration arbiter`.split(arbiter.takeActions())
            for ticket in writes { arbiter.reported(ticket, offset: offset) }
            for answer in answers + `A registration arbiter`.split(arbiter.takeActions()).answers {
                switch answer {
                case .accepted(let sequence, _, _), .stale(let sequence):
                    #expect(RegistrationArbiter.sequence(sequence) != nil)
                default: break
                }
            }
        }
    }
}
