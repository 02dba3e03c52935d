// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Logging
internal import OpenSSL
internal import PushModel
internal import Synchronization
internal import Testing

@testable internal import Configuration
@testable internal import Worker

@Suite struct `The source of statuses` {
    private let control = WorkerControl()

    /// Answers like a planner until the task is cancelled, and counts the questions.
    private func planner() -> Task<Int, Never> {
        control.heartbeat.beat(PlannerLoop.clock().monotonic)
        return Task {
            var questions = 0
            while !Task.isCancelled {
                for question in control.takeQuestions() {
                    guard case .status(let answer) = question else { continue }
                    questions += 1
                    // The others ask meanwhile.
                    try? await Task.sleep(for: .milliseconds(100))
                    answer.tell(.well())
                }
                try? await Task.sleep(for: .milliseconds(1))
            }
            return questions
        }
    }

    @Test func `however many ask at once, the planner is asked once`() async {
        let source = StatusSource(
            control, build: ServiceBuild(version: "0.1.0", commit: "x"),
            source: LogSource(worker: "worker-1"))
        let planner = planner()
        let answered = await withTaskGroup(of: WorkerStatus?.self) { group in
            for _ in 0..<1000 { group.addTask { await source.status() } }
            return await group.reduce(into: 0) {
                $0 += $1?.process.version == "0.1.0" ? 1 : 0
            }
        }
        planner.cancel()
        #expect(answered == 1000)
        // On a slow machine the answer may be too old for the last of them.
        #expect(await planner.value <= 5)
    }

    private final class MadeTexts: Sendable {
        let count = Mutex(0)

        func make(_ text: String) -> String {
            count.withLock { $0 += 1 }
            return text
        }
    }

    @Test func `however many ask at once, a status is made into text once`() async {
        let source = StatusSource(control, build: ServiceBuild())
        let planner = planner()
        let made = MadeTexts()
        let told = await withTaskGroup(of: [UInt8]?.self) { group in
            for number in 0..<1000 {
                let name = number < 500 ? "one" : "other"
                group.addTask { await source.body(for: name) { _ in made.make(name) } }
            }
            var told: [[UInt8]?: Int] = [:]
            for await text in group { told[text, default: 0] += 1 }
            return told
        }
        planner.cancel()
        _ = await planner.value
        #expect(told == [Array("one".utf8): 500, Array("other".utf8): 500])
        // On a slow machine the status may be too old for the last of them.
        #expect(made.count.withLock { $0 } <= 10)
    }

    @Test func `an admin listener keeps a history without being asked`() async throws {
        let worker = try LamplighterWorker(
            configuration: try configuration(
                "admin: {port: 0}",
                ["LAMPLIGHTER_APNS_CREDENTIALS_HOME_KEY": try ES256Key.generate().privatePEM]),
            log: FixedLog(), logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        worker.control.heartbeat.beat(PlannerLoop.clock().monotonic)
        let listening = Task { try await worker.listen() }
        defer { listening.cancel() }
        var questions = worker.control.takeQuestions()
        while questions.isEmpty {
            await Task.yield()
            questions = worker.control.takeQuestions()
        }
        guard case .status(let answer) = questions[0] else {
            Issue.record("another question")
            return
        }
        answer.tell(.well())
    }

    @Test func `while the planner does not answer, its last answer is shown as such`() async {
        let source = StatusSource(control, build: ServiceBuild())
        let before = await source.currentOrLatest()
        #expect(!before.isCurrent)
        #expect(before.phase == .replaying)
        let planner = planner()
        #expect(await source.currentOrLatest().isCurrent)
        planner.cancel()
        _ = await planner.value
        control.enter(.running)
        try? await Task.sleep(for: .milliseconds(250))
        let after = await source.currentOrLatest()
        #expect(!after.isCurrent)
        #expect(after.phase == .running)
        #expect(after.partitions.count == 1, "the last answer's")
    }
}
