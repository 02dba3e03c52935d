// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Glibc
internal import Intake
internal import PushModel
internal import RecordFormats
internal import Testing

@testable internal import Pipeline

/// What is many must not cost more each.
@Suite struct `Very many pushes` {
    /// CPU time of this thread for so many alerts to one token, read and sent; the least of three.
    private func cost(alerts: Int) -> Int {
        (0..<3).map { _ in
            let fixture = PipelineFixture { settings in
                settings.slots = 16_384
                settings.payloadBytesMax = 1 << 30
            }
            fixture.checksEachCall = false
            fixture.register("D", [.device([9], shows: ["inbox"])])
            let start = Self.cpuTime()
            for number in 0..<alerts {
                fixture.event("inbox", EventValue.alert("\(number)"))
            }
            while !fixture.deliverAll().isEmpty {}
            return Self.cpuTime() - start
        }.min()!
    }

    private static func cpuTime() -> Int {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return time.tv_sec * 1_000_000_000 + time.tv_nsec
    }

    @Test func `very many pushes of one token with payloads cost the same each`() {
        // Four times as many cost 16 times as much where each is searched for among all.
        #expect(cost(alerts: 12_000) < 9 * cost(alerts: 3000))
    }

    @Test func `very many pushes of a large, changing audience wait for a delay with one fan-out`()
    {
        let fixture = PipelineFixture(bindings: [
            TopicBinding(decode: .json, delay: .seconds(5))
        ]) { settings in
            settings.slots = 32
            settings.immediateFanOutMax = 4
            settings.fanOutsMax = 16
        }
        for number in 0..<100 as Range<UInt8> {
            fixture.registerControl("I\(number)", [number], shows: ["hot"])
        }
        for _ in 0..<40 {
            fixture.event("hot")
            fixture.pass(.milliseconds(10))
        }
        #expect(fixture.load.fanOuts == 1)
        #expect(fixture.take().isEmpty, "each waits for its delay")
        var sent: Set<[UInt8]> = []
        for _ in 0..<200 {
            fixture.pass(.seconds(1))
            sent.formUnion(fixture.deliverAll().map(\.token))
        }
        #expect(sent.count == 100)
        #expect(fixture.isIdle && fixture.committableOffset == 40)
    }

    @Test func `very many pushes that may go at once do not wait for those with a delay`() {
        let fixture = PipelineFixture(bindings: [
            .standard, TopicBinding(decode: .json, delay: .seconds(5)),
        ]) { $0.immediateFanOutMax = 1 }
        for number in 0..<10 as Range<UInt8> {
            fixture.registerControl("I\(number)", [number], shows: ["hot"])
        }
        fixture.event("hot", binding: 1)
        fixture.event("hot")
        #expect(fixture.load.fanOuts == 2)
    }
}
