// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Intake
internal import Planning
internal import PushModel
internal import RecordFormats
internal import Testing

@testable internal import Pipeline

/// The slots that are kept for deferred pushes: a pool that takes nothing leaves them to others.
@Suite struct `The share of deferred pushes` {
    private let apps: [String]
    private let pipeline: PipelineFixture
    private let deferred: DeferredFixture
    private static let classes = [
        ("control", ".push-type.controls"), ("widget", ".push-type.widgets"), ("device", ""),
    ]
    private static let rows: ClosedRange<UInt8> = 1...120

    init() {
        apps = (0..<4).map { "com.example.App\($0)" }
        pipeline = PipelineFixture(apps: apps) { settings in
            settings.slots = 1024
            settings.holdMax = .seconds(10)
            settings.registrationGrace = .zero
        }
        pipeline.checksEachCall = false
        deferred = DeferredFixture(pipeline)
        for app in apps {
            for n in Self.rows {
                pipeline.register(
                    "I\(n)",
                    [
                        .control([n, 1], shows: ["s\(n)"]), .widget([n, 2], shows: ["s\(n)"]),
                        .device([n, 3], shows: ["s\(n)"], hearsChanges: true),
                    ], app: app)
            }
        }
        for n in Self.rows {
            pipeline.register(
                "D\(n)", [.control([n, 9], shows: ["d\(n)"])], environment: .development,
                app: apps[0])
        }
        deferred.assign()
    }

    private func write(_ app: String, _ token: [UInt8], ofClass number: Int, in environment: String)
    {
        let now = pipeline.now.wall
        let (word, suffix) = Self.classes[number]
        deferred.write(
            DeferredFixture.Record(
                key: "\(environment)/\(app)\(suffix)/\(Hexadecimal.encode(token))",
                value: #"{"v":1,"notBefore":"\#(now.rfc3339)","#
                    + #""expiresAt":"\#((now + .seconds(7200)).rfc3339)","class":"\#(word)","#
                    + #""attempts":0}"#))
    }

    private func writeBacklog(apps: ArraySlice<String>) {
        for n in Self.rows {
            for app in apps {
                for number in Self.classes.indices {
                    write(app, [n, UInt8(number + 1)], ofClass: number, in: "production")
                }
            }
        }
        deferred.read()
    }

    private func writeOthers() {
        for n in Self.rows { write(apps[0], [n, 9], ofClass: 0, in: "development") }
        deferred.read()
    }

    /// How many pushes of the other pool are accepted within a minute.
    private func othersSent(meanwhile: () -> Void) -> Int {
        var sent = 0
        for _ in 0..<60 {
            for _ in 0..<5 {
                pipeline.pass(.milliseconds(200))
                for push in pipeline.take(64, pool: 1) {
                    pipeline.answer(push, 200)
                    sent += 1
                }
                deferred.produce()
                deferred.read()
            }
            meanwhile()
        }
        return sent
    }

    @Test(arguments: [1, 2, 4])
    func `a team whose key is refused leaves them to others`(apps count: Int) {
        writeBacklog(apps: apps.prefix(count))
        // APNs takes one push each 10 ms, and then refuses the key.
        for _ in 0..<200 {
            pipeline.pass(.milliseconds(10))
            for push in pipeline.take(1) { pipeline.answer(push, 200) }
            deferred.produce()
        }
        pipeline.answer(pipeline.take(1)[0], 403, .invalidProviderToken)
        pipeline.pass(.milliseconds(10))
        let probes = max(
            HoldWatch.probesKept, pipeline.pipeline.state.settings.sizes.deferredSlots / 16)
        #expect(pipeline.pipeline.state.pushes.deferredShareCount == probes)
        writeOthers()
        let sent = othersSent {
            for push in pipeline.take(1, pool: 0) {
                pipeline.answer(push, 403, .invalidProviderToken)
            }
        }
        #expect(sent == Self.rows.count)
        pipeline.checkInvariants()
    }

    @Test func `a slow team leaves them to others`() {
        writeBacklog(apps: apps[...])
        pipeline.pass(.milliseconds(10))
        writeOthers()
        let sent = othersSent {
            for push in pipeline.take(1, pool: 0) { pipeline.answer(push, 200) }
        }
        #expect(sent == Self.rows.count)
        pipeline.checkInvariants()
    }

    @Test func `what an operator pauses gives them back`() {
        writeBacklog(apps: apps[...])
        pipeline.pass(.milliseconds(10))
        #expect(pipeline.pipeline.state.pushes.deferredShareCount > 0)
        for app in apps { pipeline.restrict(.pushes(app: app, tokenClass: nil), .pause) }
        for _ in 0..<3 { pipeline.pass(.milliseconds(10)) }
        #expect(pipeline.pipeline.state.pushes.deferredShareCount == 0)
        pipeline.checkInvariants()
    }
}
