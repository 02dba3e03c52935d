// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Pipeline
internal import PushModel
internal import Telemetry
internal import Testing

@testable internal import Worker

@Suite struct `The status of canaries` {
    private func status(
        silence: Duration?, _ stage: Canary.Stage, proof: Canary.Stage? = nil
    ) -> WorkerStatus {
        var status = WorkerStatus.well()
        status.canary = .sample(at: status.at, silence: silence, stage, proof: proof)
        return status
    }

    @Test func `two that are missed are a problem, and not one`() throws {
        #expect(Diagnosis(status(silence: .seconds(180), .unread)).problems.isEmpty)
        #expect(Diagnosis(status(silence: nil, .unread)).problems.isEmpty)
        let problem = try #require(
            Diagnosis(status(silence: .seconds(181), .unread)).problems.first)
        #expect(problem.severity == .error)
        #expect(
            problem.summary
                == "No canary has come through to APNs for 3 min, and one is due every 60 s: of the "
                + "latest, written 40 s ago to events/3, it was not read yet.")
    }

    @Test(
        arguments: [
            (.unacknowledged, "Kafka has not acknowledged it", "what else is reported"),
            (
                .refused(cause: "_MSG_TIMED_OUT"), "has not taken it (_MSG_TIMED_OUT)",
                "what else is reported"
            ),
            (
                .ended(.unmatched), "nobody is registered",
                "one token without a minimum gap for the subject canary"
            ),
            (.ended(.dropped), "ended as dropped", "operators have dropped"),
            (.ended(.filtered), "ended as filtered", "canary.app and canary.subject"),
            (
                .withoutPush, "no push was made: its token is suppressed",
                "Register one token without"
            ),
            (.sent(last: nil), "its push waits", "lamplighter explain --subject canary"),
            (.sent(last: "403 InvalidProviderToken"), "push: 403 InvalidProviderToken", "explain"),
            (.sent(last: "400 BadDeviceToken"), "push: 400 BadDeviceToken", "register a token"),
            (.unsent(.dropped), "an operator has its push dropped", "lamplighter restrictions"),
            (.unsent(.suppressed), "called its token dead", "another token"),
            (.unsent(.expired), "expired before it could be sent", "explain"),
            (.unsent(.superseded), "a newer one has replaced it", "explain"),
        ] as [(Canary.Stage, String, String)])
    func `the problem says how far the latest came, and what to do`(
        stage: Canary.Stage, summary: String, remedy: String
    ) throws {
        let problem = try #require(Diagnosis(status(silence: .seconds(600), stage)).problems.first)
        #expect(problem.summary.contains(summary) && problem.remedy.contains(remedy), "\(problem)")
    }

    @Test func `none that could be written is a problem, too`() throws {
        var status = status(silence: .seconds(600), .unread)
        status.canary?.latest = nil
        let problem = try #require(Diagnosis(status).problems.first)
        #expect(
            problem.summary.hasSuffix("the group has not said which partitions are this worker's."))
    }

    @Test func `the report and its line have when the last came through`() throws {
        let proof = Canary.Stage.cameThrough(status: 410, after: .milliseconds(84))
        let report = StatusReport(status(silence: .seconds(40), proof, proof: proof))
        let canary = try #require(report.canary)
        #expect(
            canary
                == StatusReport.Canary(
                    every: .seconds(60), silence: .seconds(40), latency: .milliseconds(84),
                    lastSuccessAt: WallTime(rfc3339: "2026-11-21T06:07:00.123Z"),
                    latest: "APNs answered 410 after 84 ms",
                    written: 9, cameThrough: 4))
        #expect(StatusReport(json: Array(report.json.utf8))?.canary == canary)
        let line = try #require(report.lines.first { $0.hasPrefix("canary") })
        #expect(
            line.hasSuffix(
                "one every 60 s, the newest that came through was written 40 s ago and took 84 ms; the "
                    + "latest: APNs answered 410 after 84 ms"), "\(line)")
        let idle = StatusReport(status(silence: nil, .unread))
        #expect(
            idle.lines.contains {
                $0.hasSuffix("none while this worker has no partition of its topic")
            })
        #expect(StatusReport(.well()).canary == nil)
    }

    @Test func `the metrics have series only where canaries are written`() {
        func series(_ status: WorkerStatus) -> [String: Int] {
            let families = WorkerMetrics.families(of: status).filter {
                $0.definition.name.hasPrefix("lamplighter_canar")
            }
            return Dictionary(
                uniqueKeysWithValues: families.map { ($0.definition.name, $0.series.count) })
        }
        #expect(series(.well()).values.allSatisfy { $0 == 0 } && series(.well()).count == 4)
        let proof = Canary.Stage.cameThrough(status: 200, after: .milliseconds(84))
        #expect(
            series(status(silence: .seconds(1), proof, proof: proof))
                == [
                    "lamplighter_canary_period_seconds": 1, "lamplighter_canary_silence_seconds": 1,
                    "lamplighter_canary_latency_seconds": 1, "lamplighter_canaries_total": 2,
                ])
        #expect(series(status(silence: nil, .unread))["lamplighter_canary_silence_seconds"] == 0)
    }
}
