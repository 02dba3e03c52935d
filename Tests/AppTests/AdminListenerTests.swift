// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import HTTPListener
internal import Logging
internal import PushModel
internal import Synchronization
internal import Testing

@testable internal import Configuration
@testable internal import Worker

@Suite struct `The admin listener` {
    /// Keeps the lines that its level lets through.
    private final class RecordedLog: AdjustableLog {
        private let current = Mutex(Logger.Level.info)
        let lines = Mutex<[String]>([])

        var level: Logger.Level { current.withLock { $0 } }

        func change(level: Logger.Level) { current.withLock { $0 = level } }

        var logger: Logger { Logger(label: "test") { _ in Handler(log: self) } }

        struct Handler: LogHandler {
            let log: RecordedLog
            var metadata: Logger.Metadata = [:]
            var logLevel: Logger.Level {
                get { log.level }
                set { log.change(level: newValue) }
            }

            subscript(metadataKey key: String) -> Logger.Metadata.Value? {
                get { metadata[key] }
                set { metadata[key] = newValue }
            }

            func log(event: LogEvent) {
                let metadata = event.metadata ?? [:]
                let from = metadata["from"].map { "\($0)" } ?? ""
                let to = metadata["to"].map { "\($0)" } ?? ""
                log.lines.withLock { $0.append("\(event.message): \(from) -> \(to)") }
            }
        }
    }

    private let log = RecordedLog()
    private var admin: AdminListener {
        let control = WorkerControl()
        control.heartbeat.beat(PlannerLoop.clock().monotonic)
        return AdminListener(
            probes: Probes(control: control, delivery: []),
            source: StatusSource(control, build: ServiceBuild()),
            explain: ExplainSource(control, plan: WorkerPlan(try! configuration(""))), log: log,
            logger: log.logger)
    }

    private func put(_ body: String) async -> HTTPAnswer {
        await admin.answer(
            HTTPRequest(method: .put, path: "/log-level", body: Array(body.utf8)))
    }

    @Test(arguments: [
        ("{\"level\":\"debug\"}", Logger.Level.debug), ("error\n", .error), (" trace ", .trace),
        ("{\"level\":\"critical\",\"for\":\"ever\"}", .critical),
    ])
    func `the level of the log is changed and answered`(
        body: String, level: Logger.Level
    ) async {
        let answer = await put(body)
        #expect(answer == .json("{\"level\":\"\(level)\"}"))
        #expect(log.level == level)
        #expect(
            log.lines.withLock { $0 } == [
                "an operator has changed the level of the log: info -> \(level)"
            ])
        #expect(await admin.answer(HTTPRequest(path: "/log-level")) == answer)
    }

    @Test func `a change between levels that hide a notice is logged`() async {
        log.change(level: .warning)
        #expect(await put("critical").status == 200)
        #expect(log.level == .critical)
        #expect(
            log.lines.withLock { $0 } == [
                "an operator has changed the level of the log: warning -> critical"
            ])
    }

    @Test(arguments: ["", "loud", "{\"level\":\"loud\"}", "{}", "DEBUG", "debug info", "\"debug\""])
    func `a level that there is not changes nothing`(body: String) async {
        let answer = await put(body)
        #expect(answer.status == 400)
        #expect(
            String(decoding: answer.body, as: UTF8.self)
                == "the body must be one of trace, debug, info, notice, warning, error, critical, "
                + "or JSON as in {\"level\":\"debug\"}\n")
        #expect(log.level == .info)
        #expect(log.lines.withLock { $0.isEmpty })
    }

    /// Nobody answers here for the planner.
    @Test func `a status without the planner is shown as an old one, with why`() async throws {
        let answer = await admin.answer(HTTPRequest(path: "/status"))
        #expect(answer.status == 503)
        let report = try #require(StatusReport(json: answer.body))
        #expect(report.phase == "replaying")
        #expect(report.problems.map(\.severity) == [.warning])
        #expect(report.summary.hasPrefix("The planner has not answered for 2 s"))
        #expect(
            await admin.answer(HTTPRequest(method: .put, path: "/status")).headers["Allow"]
                == "GET")
    }

    @Test func `a path or a method that is not served is refused`() async {
        #expect(await admin.answer(HTTPRequest(path: "/metrics")).status == 404)
        let answer = await admin.answer(HTTPRequest(method: .post, path: "/log-level"))
        #expect(answer.status == 405)
        #expect(
            HTTPAnswer.notAllowed(but: [.get]).body == Array("only GET is allowed here\n".utf8))
        let both = HTTPAnswer.notAllowed(but: [.get, .put])
        #expect(both.body == Array("only GET and PUT are allowed here\n".utf8))
        #expect(both.headers["Allow"] == "GET, PUT")
        #expect(answer.headers["Allow"] == "GET, PUT")
    }
}
