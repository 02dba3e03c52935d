// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import PushModel
import RecordFormats
import Testing

@testable import RegistrarRules

/// Seeded lives of a partition and its owners, with former owners that go on writing for a while because
/// they do not know yet. Registrations and removals, of clients that count and of those that do not.
@Suite struct `Registrar lives` {
    private struct Line {
        var handler: String
        var summary: RegistrationSummary?
        var owner: Ownership
        var order: ClientOrder
    }

    /// A write on its way to the log.
    private struct Flight {
        var arbiter: Int
        var ticket: RegistrationArbiter.Ticket
        var line: Line
    }

    /// What was asked of a arbiter. Those of a handler have an order: the client's count, or for one
    /// that does not count when they were asked, the owners one after the other.
    private struct Asked: Comparable {
        var handler: String
        var owner = 0
        var count: Int64
        /// Its content in the log; nil for a removal.
        var content: UInt64?

        static func < (one: Asked, other: Asked) -> Bool {
            (one.owner, one.count) < (other.owner, other.count)
        }
    }

    private struct Life {
        /// One client counts and only registers, with old sequences now and then; one counts and removes
        /// too; one does not count.
        static let handlers = ["counts", "removes", "plain"]

        var random: SplitMix64
        var log: [Line] = []
        var flights: [Flight] = []
        var arbiters: [RegistrationArbiter] = []
        /// How far each arbiter has read the log.
        var read: [Int] = []
        /// The newest arbiter; those before are former owners.
        var owner: Int { arbiters.count - 1 }
        var asked: [RegistrationArbiter.RequestID: Asked] = [:]
        var acknowledged: [Asked] = []
        var lastRequest: RegistrationArbiter.RequestID = 0

        init(seed: UInt64) {
            random = SplitMix64(seed: seed)
            handOver()
        }

        mutating func chance(_ part: Int) -> Bool { random.next() % UInt64(part) == 0 }

        /// A new owner reads the log to its end and answers from then on; the one before may not know.
        mutating func handOver() {
            arbiters.append(RegistrationArbiter(writer: UInt64(arbiters.count + 1), seed: 3))
            read.append(0)
            arbiters[owner].assigned(0, logEnd: Int64(log.count))
            follow(owner)
            arbiters[owner].caughtUp(0, now: `A registration arbiter`.now + .seconds(10 * owner))
            perform(owner)
        }

        mutating func follow(_ arbiter: Int) {
            while read[arbiter] < log.count {
                let line = log[read[arbiter]]
                arbiters[arbiter].take(
                    RegistrationArbiter.Record(
                        partition: 0, offset: Int64(read[arbiter]),
                        key: `A registration arbiter`.key,
                        handler: line.handler, summary: line.summary,
                        owner: Ownership(text: line.owner.text, at: Int64(read[arbiter])),
                        order: line.order))
                read[arbiter] += 1
            }
            perform(arbiter)
        }

        mutating func perform(_ arbiter: Int) {
            for action in arbiters[arbiter].takeActions() {
                switch action {
                case .write(let record):
                    let handler = String(decoding: record.key, as: UTF8.self).split(separator: "/")
                    let line = Line(
                        handler: String(handler[3]), summary: record.value.map(Self.summary),
                        owner: record.owner, order: record.order)
                    flights.append(Flight(arbiter: arbiter, ticket: record.ticket, line: line))
                case .answer(let request, let answer):
                    let asked = asked[request]!
                    switch answer {
                    case .accepted, .removed: acknowledged.append(asked)
                    default: break
                    }
                case .writeAgain(let key, let handler, _, let offset):
                    guard let summary = log[Int(offset)].summary else { continue }
                    arbiters[arbiter].writeAgain(
                        key, handler: handler, partition: 0, offset: offset,
                        value: Self.value(summary.sequence!, summary.content))
                    perform(arbiter)
                case .released: break
                }
            }
        }

        // MARK: Values, of which the sequence and the token count

        static func value(_ sequence: Int64, _ content: UInt64) -> [UInt8] {
            Array(#"{"sequence":\#(sequence),"targets":[{"token":"\#(content)"}]}"#.utf8)
        }

        static func summary(_ value: [UInt8]) -> RegistrationSummary {
            func number(after name: String) -> Int64 {
                let text = String(decoding: value, as: UTF8.self)
                guard let found = text.firstRange(of: name) else { return -1 }
                return Int64(text[found.upperBound...].prefix { $0.isHexDigit }) ?? -1
            }
            return RegistrationSummary(
                sequence: number(after: #""sequence":"#), tokenClass: .controls,
                content: UInt64(number(after: #""token":""#)))
        }

        // MARK: What happens

        /// The log takes the oldest write of a arbiter, as an idempotent producer's; its report may be
        /// lost.
        mutating func land() {
            guard !flights.isEmpty else { return }
            let arbiter = flights.randomElement(using: &random)!.arbiter
            let index = flights.firstIndex { $0.arbiter == arbiter }!
            let flight = flights.remove(at: index)
            if chance(12) {
                arbiters[arbiter].reported(flight.ticket, offset: nil)
            } else {
                log.append(flight.line)
                arbiters[arbiter].reported(
                    flight.ticket, offset: chance(10) ? nil : Int64(log.count - 1))
            }
            perform(arbiter)
        }

        mutating func ask() {
            let handler = Self.handlers.randomElement(using: &random)!
            // A registration of a client that counts reaches a former owner now and then. Others do not: it
            // takes no requests after a stop (`RegistrarLoop.stall`).
            let isPlain = handler == "plain"
            let isRemoval = handler != "counts" && chance(3)
            let goesAstray = !isPlain && !isRemoval && chance(3)
            let arbiter = goesAstray ? Int(random.next() % UInt64(arbiters.count)) : owner
            lastRequest += 1
            let isOld = handler == "counts" && chance(4)
            var new = Asked(
                handler: handler, count: isOld ? max(0, Int64(lastRequest) - 9) : Int64(lastRequest)
            )
            if isPlain { new.owner = owner }
            if isRemoval {
                asked[lastRequest] = new
                arbiters[arbiter].remove(
                    RegistrationArbiter.Removal(
                        key: `A registration arbiter`.key, handler: handler,
                        below: isPlain ? nil : new.count), in: 0, as: lastRequest)
            } else {
                new.content = UInt64(lastRequest)
                asked[lastRequest] = new
                var put = `A registration arbiter`.put(
                    isPlain ? nil : new.count, content: UInt64(lastRequest), handler: handler)
                // Two decimal digits of a token are one byte: the number is read back from the record.
                put.targets = RegistrationEncoder.targets([
                    RegistrationDraft.Target(
                        tokenClass: .control, token: Self.token(lastRequest), shows: [])
                ])
                arbiters[arbiter].put(
                    put, in: 0, as: lastRequest, now: `A registration arbiter`.now)
            }
            perform(arbiter)
        }

        private static func token(_ number: UInt64) -> [UInt8] {
            let digits = Array("\(number)".utf8).map { $0 - 48 }
            let even = digits.count.isMultiple(of: 2) ? digits : [0] + digits
            return stride(from: 0, to: even.count, by: 2).map { even[$0] << 4 | even[$0 + 1] }
        }

        mutating func run() {
            for _ in 0..<300 {
                switch random.next() % 10 {
                case 0..<4: ask()
                case 4..<8: land()
                case 8: follow(owner)
                default: if arbiters.count < 4, chance(20) { handOver() }
                }
            }
            // Whatever is on its way arrives, and the owner sees it and puts it right.
            for _ in 0..<200 {
                while !flights.isEmpty { landSafely() }
                follow(owner)
            }
        }

        private mutating func landSafely() {
            let flight = flights.removeFirst()
            log.append(flight.line)
            arbiters[flight.arbiter].reported(flight.ticket, offset: Int64(log.count - 1))
            perform(flight.arbiter)
        }

        // MARK: What is left

        /// What the log ends with must have been asked for, and not before what was acknowledged.
        func complaint(of handler: String) -> String? {
            guard let newest = acknowledged.filter({ $0.handler == handler }).max() else {
                return nil
            }
            let last = log.last { $0.handler == handler }?.summary
            // A removal of what is not there writes nothing.
            let ends = asked.values.filter {
                $0.handler == handler && $0.content == last?.content && !($0 < newest)
            }
            guard ends.isEmpty else { return nil }
            return "ends with \(last.map { "\($0.content)" } ?? "nothing"), "
                + "and \(newest) was acknowledged"
        }
    }

    @Test func `lose no acknowledged registration and no removal`() {
        var writtenAgain: UInt64 = 0
        for seed in UInt64(0)..<1000 {
            var life = Life(seed: seed)
            life.run()
            for handler in Life.handlers {
                guard let complaint = life.complaint(of: handler) else { continue }
                Issue.record("seed \(seed): \(handler) \(complaint)")
            }
            writtenAgain += life.arbiters.reduce(0) { $0 + $1.writtenAgain }
        }
        #expect(writtenAgain > 50, "the lives are too quiet to show anything")
    }
}
