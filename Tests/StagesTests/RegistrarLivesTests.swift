// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import PushModel
import RecordFormats
import Testing

@testable import Registering

/// Seeded lives of a partition and its owners, with a former owner that goes on writing for a while
/// because it does not know yet.
@Suite struct `Registrar lives` {
    private struct Line {
        var handler: String
        var summary: RegistrationSummary?
        var writer: UInt64
    }

    /// A write on its way to the log.
    private struct Flight {
        var desk: Int
        var ticket: RegistrationDesk.Ticket
        var line: Line
    }

    private struct Life {
        var random: SplitMix64
        var log: [Line] = []
        var flights: [Flight] = []
        var desks: [RegistrationDesk] = []
        /// How far each desk has read the log.
        var read: [Int] = []
        /// The newest desk; those before are former owners.
        var owner: Int { desks.count - 1 }
        /// The highest sequence of each handler that somebody was told is safe.
        var acknowledged: [String: Int64] = [:]
        var requests: [RegistrationDesk.RequestID: (handler: String, sequence: Int64)] = [:]
        var lastRequest: RegistrationDesk.RequestID = 0
        var lastSequence: Int64 = 0

        init(seed: UInt64) {
            random = SplitMix64(seed: seed)
            handOver()
        }

        mutating func chance(_ part: Int) -> Bool { random.next() % UInt64(part) == 0 }

        /// A new owner reads the log to its end and answers from then on; the one before may not know.
        mutating func handOver() {
            desks.append(RegistrationDesk(writer: UInt64(desks.count + 1), seed: 3))
            read.append(0)
            desks[owner].assigned(0)
            follow(owner)
            desks[owner].caughtUp(0)
        }

        mutating func follow(_ desk: Int) {
            while read[desk] < log.count {
                let line = log[read[desk]]
                desks[desk].take(
                    RegistrationDesk.Record(
                        partition: 0, offset: Int64(read[desk]), key: `A registration desk`.key,
                        handler: line.handler, summary: line.summary, writer: line.writer))
                read[desk] += 1
            }
            perform(desk)
        }

        mutating func perform(_ desk: Int) {
            for action in desks[desk].takeActions() {
                switch action {
                case .write(let ticket, _, let key, let value, _):
                    let handler = String(decoding: key, as: UTF8.self).split(separator: "/")[3]
                    let line = Line(
                        handler: String(handler), summary: value.flatMap(Self.summary),
                        writer: UInt64(desk + 1))
                    flights.append(Flight(desk: desk, ticket: ticket, line: line))
                case .answer(let request, let answer):
                    let asked = requests.removeValue(forKey: request)!
                    if case .accepted(let sequence, _, _) = answer {
                        acknowledged[asked.handler] = max(
                            acknowledged[asked.handler] ?? -1, sequence)
                    }
                case .writeAgain(let key, let handler, _, let offset):
                    guard let summary = log[Int(offset)].summary else { continue }
                    desks[desk].writeAgain(
                        key, handler: handler, partition: 0, offset: offset,
                        value: Array("\(summary.sequence!)".utf8))
                    perform(desk)
                case .released: break
                }
            }
        }

        /// Of a record's value the sequence is enough: the content is always the same.
        static func summary(_ value: [UInt8]) -> RegistrationSummary? {
            let text = String(decoding: value, as: UTF8.self)
            let digits = text.firstRange(of: #""sequence":"#).map { text[$0.upperBound...] }
            let sequence = Int64((digits ?? text[...]).prefix { $0.isNumber })
            return RegistrationSummary(sequence: sequence, tokenClass: .controls, content: 1)
        }

        /// The log takes the oldest write of a desk, as an idempotent producer's; its report may be
        /// lost.
        mutating func land() {
            guard !flights.isEmpty else { return }
            let desk = flights.randomElement(using: &random)!.desk
            let index = flights.firstIndex { $0.desk == desk }!
            let flight = flights.remove(at: index)
            if chance(12) {
                desks[desk].reported(flight.ticket, offset: nil)
            } else {
                log.append(flight.line)
                desks[desk].reported(
                    flight.ticket, offset: chance(10) ? nil : Int64(log.count - 1))
            }
            perform(desk)
        }

        mutating func ask() {
            // A request reaches a former owner now and then.
            let desk = chance(3) ? Int(random.next() % UInt64(desks.count)) : owner
            let handler = ["A", "B"].randomElement(using: &random)!
            lastSequence += 1
            let sequence = chance(4) ? max(0, lastSequence - 4) : lastSequence
            lastRequest += 1
            requests[lastRequest] = (handler, sequence)
            desks[desk].put(
                `A registration desk`.put(sequence, handler: handler), in: 0, as: lastRequest,
                now: `A registration desk`.now)
            perform(desk)
        }

        mutating func run() {
            for _ in 0..<300 {
                switch random.next() % 10 {
                case 0..<4: ask()
                case 4..<8: land()
                case 8: follow(owner)
                default: if desks.count < 4, chance(20) { handOver() }
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
            desks[flight.desk].reported(flight.ticket, offset: Int64(log.count - 1))
            perform(flight.desk)
        }
    }

    @Test func `lose no acknowledged registration`() {
        var writtenAgain: UInt64 = 0
        for seed in UInt64(0)..<400 {
            var life = Life(seed: seed)
            life.run()
            for (handler, sequence) in life.acknowledged {
                let last = life.log.last { $0.handler == handler }?.summary?.sequence ?? -1
                guard last < sequence else { continue }
                Issue.record(
                    "seed \(seed): \(handler) ends at \(last), and \(sequence) was acknowledged")
            }
            writtenAgain += life.desks.reduce(0) { $0 + $1.writtenAgain }
        }
        #expect(writtenAgain > 20, "the lives are too quiet to show anything")
    }
}
