// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Intake
internal import PushModel
internal import RecordFormats

@testable internal import Pipeline

/// The owner of a partition of `deferred`, and controls 1, 2, … of which number n shows `sn`.
final class DeferredOwner {
    let pipeline: PipelineFixture
    let deferred: DeferredFixture

    init(controls: Int = 2, adjust: (inout PipelineSettings) -> Void = { _ in }) {
        pipeline = PipelineFixture { settings in
            settings.holdMax = .seconds(10)
            settings.registrationGrace = .zero
            settings.breakerBackoff = Backoff(least: .seconds(600), most: .seconds(600))
            adjust(&settings)
        }
        for number in 1...controls {
            pipeline.registerControl("I\(number)", [UInt8(number)], shows: ["s\(number)"])
        }
        deferred = DeferredFixture(pipeline)
        deferred.assign()
    }

    /// Another worker defers a push to this token.
    func write(
        _ token: UInt8, ttl: Duration = .seconds(7200), environment: String = "production"
    ) {
        let topic = "com.example.Home.push-type.controls"
        write("\(environment)/\(topic)/\(Hexadecimal.encode([token]))", ttl: ttl)
    }

    /// Another worker defers a payload to device 9 that collapses under `game`.
    func writeGame(_ text: String, readAt: WallTime) {
        write(
            Self.gameKey,
            more: #","payload":{"aps":{"alert":"\#(text)"}},"collapseID":"game","#
                + #""payloadAt":"\#(readAt.rfc3339)""#)
    }

    /// Another worker got a payload accepted that was read then.
    func endGame(readAt: WallTime) {
        deferred.write(
            DeferredFixture.Record(key: Self.gameKey, value: nil, endedPayloadAt: readAt))
        deferred.read()
    }

    /// The key that a worker writes for this payload.
    private static let gameKey: String = {
        let worker = PipelineFixture { $0.holdMax = .seconds(10) }
        worker.register("D", [.device([9], shows: ["score"])])
        worker.event("score", EventValue.alert("a", collapseID: "game"))
        worker.pass(.seconds(9))
        return worker.takeRecords()[0].key
    }()

    private func write(_ key: String, ttl: Duration = .seconds(7200), more: String = "") {
        let now = pipeline.now.wall
        let word = key.contains("push-type") ? "control" : "device"
        deferred.write(
            DeferredFixture.Record(
                key: key,
                value: #"{"v":1,"notBefore":"\#(now.rfc3339)","#
                    + #""expiresAt":"\#((now + ttl).rfc3339)","class":"\#(word)","#
                    + #""attempts":0\#(more)}"#))
        deferred.read()
    }

    /// Opens the circuit breaker for at least a minute.
    func openBreaker() {
        pipeline.event("s1")
        pipeline.answer(pipeline.take(1)[0], 403, .invalidProviderToken)
    }
}
