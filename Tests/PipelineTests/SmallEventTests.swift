// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Pipeline
internal import PushModel
internal import Testing

/// A delivery thread and APNs in virtual time, with the rule by which both transports send. An answer
/// comes a round trip after its request; so what goes together is answered together, and streams are
/// free in bursts.
private struct PlayedDelivery {
    let streams = 100
    /// Milliseconds.
    let roundTrip = 50
    /// Whether all pushes wait in one list for all streams, as if none were patient.
    let isPlain: Bool
    private var waiting: [Bool: [SentPush]] = [false: [], true: []]
    private var share = PatientShare()
    private var inFlight: [(push: SentPush, doneAt: Int)] = []

    init(isPlain: Bool) { self.isPlain = isPlain }

    var room: PoolRoom {
        let capacity = streams + streams / 8
        let held = inFlight.count + waiting.values.reduce(0) { $0 + $1.count }
        return isPlain
            ? PoolRoom(free: capacity - held, kept: 0) : PoolRoom(capacity: capacity, held: held)
    }

    mutating func take(_ pushes: [SentPush], isPatient: Bool) {
        waiting[isPatient && !isPlain]! += pushes
    }

    mutating func send(at time: Int) {
        for part in SendingPart.allCases {
            let kept = part.isKeptBack ? PatientShare.kept(of: streams) : 0
            let wanted = part == .owed ? share.owed : Int.max
            let free = streams - inFlight.count - kept
            let count = max(0, min(wanted, free, waiting[part.isPatient]!.count))
            inFlight += waiting[part.isPatient]!.prefix(count).map { ($0, time + roundTrip) }
            waiting[part.isPatient]!.removeFirst(count)
            if part.isPatient {
                share.patientWent(count)
            } else {
                share.promptWent(count, isWaitedFor: !waiting[true]!.isEmpty)
            }
        }
    }

    /// The pushes that are answered by now.
    mutating func answered(at time: Int) -> [SentPush] {
        let count = inFlight.prefix { $0.doneAt <= time }.count
        defer { inFlight.removeFirst(count) }
        return inFlight.prefix(count).map(\.push)
    }
}

/// From the fan-out to the streams of a connection. APNs takes 2 pushes a millisecond.
@Suite struct `Small events beside a large audience` {
    /// More than the small events of five seconds, at one every 7 ms.
    private static let doors = 720

    private struct Result {
        /// How many milliseconds each small event took until it was answered.
        var small: [Int] = []
        var large = 0
        var p99: Int { small.sorted()[small.count * 99 / 100] }
    }

    /// - Parameter hot: how many controls the large audience has.
    private func fixture(hot: Int = 1000) -> PipelineFixture {
        let fixture = PipelineFixture { settings in
            settings.slots = 8192
            settings.immediateFanOutMax = 16
            settings.registrationGrace = .zero
        }
        fixture.checksEachCall = false
        for number in 0..<Self.doors {
            fixture.registerControl(
                "D\(number)", [2, UInt8(number >> 8), UInt8(number & 255)],
                shows: ["door-\(number)"])
        }
        for number in 0..<hot {
            fixture.registerControl(
                "H\(number)", [3, UInt8(number >> 8), UInt8(number & 255)], shows: ["hot"])
        }
        return fixture
    }

    /// Plays five seconds.
    /// - Parameters:
    ///   - hotEvery: the milliseconds from one event of the large audience to the next; nil for none.
    ///   - smallEvery: those from one small event to the next, each of another control.
    ///   - perTime: how many small events come each time.
    private func play(
        hotEvery: Int? = nil, smallEvery: Int? = 7, perTime: Int = 1, isPlain: Bool = false
    ) -> Result {
        let fixture = fixture()
        var delivery = PlayedDelivery(isPlain: isPlain)
        var result = Result()
        var (unread, next): ([String], Int) = ([], 0)
        var asked: [[UInt8]: Int] = [:]
        for time in 0..<5000 {
            if let hotEvery, time % hotEvery == 0 { unread.append("hot") }
            if let smallEvery, time % smallEvery == smallEvery / 2 {
                for _ in 0..<perTime {
                    let number = next % Self.doors
                    unread.append("door-\(number)")
                    asked[[2, UInt8(number >> 8), UInt8(number & 255)], default: time] = time
                    next += 1
                }
            }
            for push in delivery.answered(at: time) {
                fixture.answer(push, 200)
                if push.token[0] == 3 { result.large += 1 }
                if let since = asked.removeValue(forKey: push.token) {
                    result.small.append(time - since)
                }
            }
            let read = min(unread.count, fixture.pipeline.roomForEvents)
            for subject in unread[..<read] { fixture.event(subject) }
            unread.removeFirst(read)
            fixture.pass(.milliseconds(1))
            for (pushes, isPatient) in fixture.handOver(delivery.room) {
                delivery.take(pushes, isPatient: isPatient)
            }
            delivery.send(at: time)
        }
        fixture.checkInvariants()
        return result
    }

    @Test func `a small event beside a large audience takes no longer than half as long again`() {
        let quiet = play()
        let busy = play(hotEvery: 100)
        #expect(quiet.small.count > 700 && busy.small.count > 700)
        #expect(2 * busy.p99 <= 3 * quiet.p99, "p99 of \(busy.p99) ms, \(quiet.p99) ms in quiet")
        #expect(busy.large > 8000, "APNs is kept busy: \(busy.large)")
        // Without the two lines they wait for the next burst of answers.
        let plain = play(hotEvery: 100, isPlain: true)
        #expect(plain.p99 * 10 >= quiet.p99 * 17, "p99 of \(plain.p99) ms")
    }

    @Test func `a large audience goes on while small events are more than APNs takes`() {
        let busy = play(hotEvery: 100, smallEvery: 1, perTime: 4)
        let all = busy.large + busy.small.count
        #expect(busy.large * 100 >= all * 9, "\(busy.large) of \(all)")
        #expect(busy.small.count * 100 >= all * 80, "and no more than it is owed")
    }

    @Test func `a hand-over owes patient pushes a tenth where room is scarce`() {
        let fixture = fixture()
        fixture.event("hot")
        for number in 0..<90 { fixture.event("door-\(number)") }
        fixture.pass(.milliseconds(1))
        var order: [Bool] = []
        while order.count < 100 {
            // What is kept for prompt pushes is all that is free.
            let handed = fixture.handOver(PoolRoom(free: 1, kept: 1))
            guard let one = handed.first else { break }
            #expect(handed.count == 1 && one.pushes.count == 1)
            #expect(one.isPatient == (one.pushes[0].token[0] == 3))
            order.append(one.isPatient)
        }
        #expect(order.enumerated().allSatisfy { $1 == ($0 % 10 == 9) })
    }

    @Test func `patient pushes leave free what is kept, whether bulk or of background urgency`() {
        let fixture = fixture()
        fixture.register("P", [.device([4], shows: ["sync"], hearsChanges: true)])
        fixture.event("hot")
        fixture.event("sync")
        fixture.pass(.milliseconds(1))
        #expect(fixture.handOver(PoolRoom(free: 5, kept: 5)).isEmpty)
        fixture.event("door-1")
        let handed = fixture.handOver(PoolRoom(free: 5, kept: 5))
        #expect(handed.map(\.isPatient) == [false] && handed[0].pushes.map(\.token) == [[2, 0, 1]])
        let rest = fixture.handOver(PoolRoom(free: 25, kept: 5))
        #expect(rest.map(\.isPatient) == [true] && rest[0].pushes.count == 20)
        #expect(rest[0].pushes.contains { $0.token == [4] })
    }

    @Test func `what patient pushes are owed is not spent on those that end unsent`() {
        let fixture = fixture(hot: 4000)
        for number in 0..<20 {
            fixture.registerControl("W\(number)", [5, UInt8(number)], shows: ["warm"])
        }
        fixture.register("P", [.device([4], shows: ["sync"], hearsChanges: true)])
        fixture.event("hot")
        fixture.pass(.milliseconds(1))
        let expired = fixture.load.queued
        #expect(expired > 1000)
        fixture.pass(.seconds(14 * 24 * 3600))
        // Behind these waits one that may not go.
        fixture.restrict(.pushes(app: PipelineFixture.app, tokenClass: .device), .pause)
        fixture.event("sync")
        for number in 0..<11 { fixture.event("door-\(number)") }
        fixture.pass(.milliseconds(1))
        // Nine prompt pushes, then a turn of patient ones in which all that may go have expired.
        for _ in 0..<10 {
            let handed = fixture.handOver(PoolRoom(free: 1, kept: 1))
            #expect(handed.map(\.isPatient) == [false])
        }
        #expect(fixture.counters.expired >= expired)
        fixture.event("warm")
        fixture.pass(.milliseconds(1))
        let owed = fixture.handOver(PoolRoom(free: 1, kept: 1))
        #expect(owed.map(\.isPatient) == [true] && owed[0].pushes[0].token[0] == 5)
    }

    @Test func `a live push behind expired ones of a large audience goes when one is owed`() {
        let fixture = fixture(hot: 4000)
        for number in 0..<20 {
            fixture.registerControl("W\(number)", [5, UInt8(number)], shows: ["warm"])
        }
        fixture.event("hot")
        fixture.pass(.milliseconds(1))
        let expired = fixture.load.queued
        fixture.pass(.seconds(14 * 24 * 3600))
        fixture.event("warm")
        for number in 0..<10 { fixture.event("door-\(number)") }
        fixture.pass(.milliseconds(1))
        for _ in 0..<9 {
            let handed = fixture.handOver(PoolRoom(free: 1, kept: 1))
            #expect(handed.map(\.isPatient) == [false])
        }
        #expect(fixture.counters.expired == 0)
        let owed = fixture.handOver(PoolRoom(free: 1, kept: 1))
        #expect(owed.map(\.isPatient) == [true] && owed[0].pushes[0].token[0] == 5)
        #expect(fixture.counters.expired >= expired)
    }

    @Test func `nothing is owed once the patient pushes have become prompt ones`() {
        let fixture = fixture()
        for number in 0..<20 {
            fixture.registerControl(
                "W\(number)", [5, UInt8(number)], shows: ["warm", "one-\(number)"])
        }
        fixture.event("warm")
        for number in 0..<20 { fixture.event("door-\(number)") }
        fixture.pass(.milliseconds(1))
        #expect(fixture.handOver(PoolRoom(free: 20, kept: 20)).map(\.isPatient) == [false])
        // A small event joins each of those that are owed something.
        for number in 0..<20 { fixture.event("one-\(number)") }
        fixture.pass(.milliseconds(1))
        let joined = fixture.handOver(PoolRoom(free: 20, kept: 20))
        #expect(joined.map(\.isPatient) == [false] && joined[0].pushes.count == 20)
        #expect(joined[0].pushes.allSatisfy { $0.token[0] == 5 })
        fixture.event("hot")
        fixture.event("door-30")
        fixture.pass(.milliseconds(1))
        let next = fixture.handOver(PoolRoom(free: 1, kept: 1))
        #expect(next.map(\.isPatient) == [false])
    }

    @Test func `what an operator drops of a large audience goes at once, too`() {
        let fixture = fixture()
        fixture.event("hot")
        fixture.pass(.milliseconds(1))
        let waiting = fixture.load.queued
        fixture.restrict(.pushes(app: PipelineFixture.app, tokenClass: nil), .drop)
        #expect(fixture.handOver(PoolRoom(free: 1, kept: 0)).isEmpty)
        #expect(fixture.counters.dropped >= waiting)
    }

    @Test func `bulk that is retried or has a follow-up stays patient`() {
        let fixture = fixture()
        fixture.event("hot")
        fixture.pass(.milliseconds(1))
        let first = fixture.handOver(PoolRoom(free: 20, kept: 0))
        #expect(first.map(\.isPatient) == [true] && first[0].pushes.count == 20)
        // The next event of the hot subject comes while they are in flight.
        fixture.event("hot")
        fixture.pass(.milliseconds(1))
        for push in first[0].pushes[..<10] { fixture.answer(push, 200) }
        for push in first[0].pushes[10...] { fixture.answer(push, 500) }
        fixture.pass(.seconds(60))
        let tokens = Set(first[0].pushes.map(\.token))
        var again: Set<[UInt8]> = []
        for _ in 0..<400 where again.count < 20 {
            for (pushes, isPatient) in fixture.handOver(PoolRoom(free: 60, kept: 10)) {
                #expect(isPatient)
                again.formUnion(pushes.map(\.token).filter(tokens.contains))
                for push in pushes { fixture.answer(push, 200) }
            }
            fixture.pass(.milliseconds(1))
        }
        #expect(again == tokens)
    }

    @Test func `patient pushes that may not go keep no prompt push waiting, nor the other way`() {
        let fixture = fixture()
        fixture.register("P", [.device([4], shows: ["sync"], hearsChanges: true)])
        fixture.restrict(.pushes(app: PipelineFixture.app, tokenClass: .device), .pause)
        fixture.event("sync")
        for number in 0..<100 { fixture.event("door-\(number)") }
        fixture.pass(.milliseconds(1))
        for _ in 0..<100 {
            let handed = fixture.handOver(PoolRoom(free: 1, kept: 1))
            #expect(handed.map(\.isPatient) == [false])
        }
        fixture.restrict(.pushes(app: PipelineFixture.app, tokenClass: .control), .pause)
        fixture.restrict(.pushes(app: PipelineFixture.app, tokenClass: .device), nil)
        fixture.event("door-200")
        fixture.pass(.milliseconds(1))
        #expect(fixture.handOver(PoolRoom(free: 1, kept: 0)).map(\.isPatient) == [true])
    }
}
