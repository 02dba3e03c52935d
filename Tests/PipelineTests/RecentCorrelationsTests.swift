// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import Testing

@testable internal import Pipeline

@Suite struct `Recent correlations` {
    private func position(_ offset: Int64, partition: Int32 = 0) -> RecordPosition {
        RecordPosition(topic: 0, partition: partition, offset: offset)
    }

    private func note(
        _ id: String?, _ traceparent: String? = nil, of position: RecordPosition,
        in recent: inout RecentCorrelations
    ) {
        Array((id ?? "").utf8).withUnsafeBytes { id in
            Array((traceparent ?? "").utf8).withUnsafeBytes { traceparent in
                recent.note(id: id, traceparent: traceparent, of: position)
            }
        }
    }

    private static func traceparent(_ number: UInt64) -> String {
        TraceContext(
            trace: TraceID(high: 1, low: number), span: SpanID(rawValue: 7), isSampled: true
        ).text
    }

    @Test func `the latest events are known by their position, older ones are not`() {
        var recent = RecentCorrelations(rowsMax: 4, textMax: 1000)
        for offset in 0..<6 as Range<Int64> {
            note("e\(offset)", of: position(offset), in: &recent)
        }
        #expect(
            (0..<6).map { recent.correlation(of: position($0)).id }
                == [nil, nil, "e2", "e3", "e4", "e5"])
        #expect(recent.correlation(of: position(3, partition: 1)) == .none)
        #expect(recent.correlation(of: position(99)) == .none)
    }

    @Test func `a text that the ring has overwritten is not given for another's`() {
        var recent = RecentCorrelations(rowsMax: 1024, textMax: 600)
        let long = String(repeating: "x", count: 250)
        note("first", of: position(0), in: &recent)
        for offset in 1...2 as ClosedRange<Int64> { note(long, of: position(offset), in: &recent) }
        #expect(recent.correlation(of: position(0)).id == "first")
        note(long, of: position(3), in: &recent)
        #expect(recent.correlation(of: position(0)) == .none)
        #expect(recent.correlation(of: position(3)).id == long)
    }

    @Test func `what is too long or no traceparent is not given`() {
        var recent = RecentCorrelations(rowsMax: 4, textMax: 1000)
        note(String(repeating: "x", count: 257), "00-nothing", of: position(0), in: &recent)
        #expect(recent.correlation(of: position(0)) == .none)
        note(nil, Self.traceparent(1), of: position(1), in: &recent)
        #expect(
            recent.correlation(of: position(1))
                == Correlation(id: nil, traceparent: Self.traceparent(1)))
    }

    /// Against a dictionary of everything: whatever is given was noted of that very position.
    @Test(arguments: 0..<20 as Range<UInt64>)
    func `no event is given what another was noted with`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var recent = RecentCorrelations(
            rowsMax: 1 << random.next(below: 7), textMax: 400 + Int(random.next(below: 3000)))
        var all: [RecordPosition: Correlation] = [:]
        var places: [RecordPosition] = []
        var found = 0
        for offset in 0..<400 as Range<Int64> {
            let place = position(offset, partition: Int32(random.next(below: 5)))
            let id = String(repeating: "a", count: Int(random.next(below: 20))) + "\(offset)"
            let traceparent =
                random.next(below: 2) == 0 ? nil : Self.traceparent(UInt64(offset) + 1)
            note(id, traceparent, of: place, in: &recent)
            all[place] = Correlation(id: id, traceparent: traceparent)
            #expect(recent.correlation(of: place) == all[place])
            places.append(place)
            for other in [places.suffix(10).randomElement(using: &random)!, position(offset / 2)] {
                let given = recent.correlation(of: other)
                guard given != .none else { continue }
                found += 1
                #expect(given == all[other])
            }
        }
        #expect(found > 0)
    }
}
