// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FleetKit
internal import HTTPListener
internal import OpenSSL
internal import PushModel
internal import RecordFormats
internal import Synchronization
internal import Testing

@testable internal import Pipeline
@testable internal import Worker

@Suite struct `Explain over HTTP` {
    private static let token: [UInt8] = [0xAB, 0xCD, 0xEF]
    private static let tokenID = Hexadecimal.encode(SHA256Digest.of(token).prefix(8))

    private func get(_ query: [String: String]) -> HTTPRequest {
        HTTPRequest(path: "/explain", query: query)
    }

    private func post(_ body: String) -> HTTPRequest {
        HTTPRequest(method: .post, path: "/explain", body: Array(body.utf8))
    }

    private func text(_ answer: HTTPAnswer) -> String {
        String(decoding: answer.body, as: UTF8.self)
    }

    /// A planner whose index has one control that shows `door`.
    private func planner() throws -> PlannerLoopFixture {
        let planner = try PlannerLoopFixture()
        var draft = RegistrationDraft(
            environment: .production, app: planner.loop.plan.routing.apps[0], installation: "6F1C",
            handler: "Garage")
        draft.targets = [
            RegistrationDraft.Target(
                tokenClass: .control, token: Self.token,
                shows: [RegistrationDraft.Show(kind: "lock", subjects: ["door"])])
        ]
        let problem = RegistrationEncoder.key(draft).withUnsafeBytes { key in
            RegistrationEncoder.value(draft).withUnsafeBytes { value in
                planner.loop.pipeline.registrationRecord(
                    TableRecord(
                        key: key, value: value, timestamp: planner.now.wall, partition: 0,
                        offset: 0), now: planner.now)
            }
        }
        #expect(problem == nil)
        return planner
    }

    /// The answer to a question, while the planner turns on this thread.
    private func ask(
        _ question: HTTPRequest, _ planner: PlannerLoopFixture
    ) async throws -> HTTPAnswer {
        let source = ExplainSource(planner.control, plan: planner.loop.plan)
        let answer = AnswerBox()
        Task { answer.put(await source.answer(question)) }
        try await waitUntil("an answer") {
            _ = planner.loop.answerQuestions(now: planner.now)
            return answer.value != nil
        }
        return try #require(answer.value)
    }

    private final class AnswerBox: Sendable {
        private let stored = Mutex<HTTPAnswer?>(nil)

        var value: HTTPAnswer? { stored.withLock { $0 } }

        func put(_ answer: HTTPAnswer) { stored.withLock { $0 = answer } }
    }

    @Test func `explain names a token by its ID, never by its bytes`() async throws {
        let planner = try planner()
        for query in [["subject": "door"], ["installation": "6F1C"], ["tokenID": Self.tokenID]] {
            let answer = try await ask(get(query), planner)
            #expect(answer.status == 200 && answer.contentType == "application/json")
            let reply = try #require(ExplainJSON.value(TokenReply.self, in: answer.body))
            #expect(reply.phase == "replaying" && reply.more == 0 && reply.gaps.isEmpty)
            #expect(reply.tokens.map(\.tokenID) == [Self.tokenID], "\(query)")
            #expect(reply.tokens.first?.state == .idle)
            #expect(reply.tokens.first?.shows.map(\.subject) == ["door"])
            #expect(!text(answer).lowercased().contains("abcdef"))
        }
    }

    @Test func `explain says whom a record would reach`() async throws {
        let planner = try planner()
        let answer = try await ask(
            post(#"{"key":"door","value":"{\"kinds\":[\"other\"]}"}"#), planner)
        let reply = try #require(ExplainJSON.value(EventReply.self, in: answer.body))
        #expect(reply.topic == "lamplighter.events" && reply.event?.subject == "door")
        #expect(reply.results.map(\.result) == ["otherKind"])
        #expect(reply.entries.map(\.tokenID) == [Self.tokenID])

        var question = EventQuestion()
        question.key = Array("door".utf8)
        question.headers = [("ce_specversion", Array("1.0".utf8))]
        let plain = try await ask(
            HTTPRequest(method: .post, path: "/explain", body: question.body), planner)
        let other = try #require(ExplainJSON.value(EventReply.self, in: plain.body))
        #expect(other.results.map(\.pushType) == ["controls"])

        let unreadable = try await ask(post(#"{"key":"door","valueBase64":"/w=="}"#), planner)
        let problem = ExplainJSON.value(EventReply.self, in: unreadable.body)?.unreadable
        #expect(problem?.code == "invalidJSON")
    }

    @Test(arguments: [
        ([:], "ask about one of"), (["subject": "a", "tokenID": "b"], "ask about one of"),
        (["subjekt": "a"], "'subjekt' is no parameter"), (["subject": ""], "1 to 256 bytes"),
        (["tokenID": "xyz"], "16 hexadecimal digits"), (["installation": "a/b"], "1 to 128"),
        (["installation": "a", "environment": "beta"], "production or development"),
        (["installation": "a", "handler": "b c"], "1 to 128"),
        (["subject": "a", "app": "com.example.Nobody"], "'com.example.Nobody' is no app of this"),
        (["installation": "a", "app": "com.example.Nobody"], "which have com.example.Home"),
    ])
    func `explain refuses a wrong question and says what is right`(
        query: [String: String], remedy: String
    ) async throws {
        let source = ExplainSource(WorkerControl(), plan: WorkerPlan(try configuration("")))
        let answer = await source.answer(get(query))
        #expect(answer.status == 400 && text(answer).contains(remedy))
    }

    @Test(arguments: [
        ("", "a JSON object"), ("{}x", "a JSON object"), (#"{"key":1}"#, "a JSON object"),
        (#"{"key":"a","valueBase64":"?"}"#, "not Base64"), (#"{"time":"noon"}"#, "RFC 3339"),
        (#"{"topic":"lamplighter.event"}"#, "the nearest there is 'lamplighter.events'"),
        (#"{"kee":"a"}"#, "'kee' is no member: topic, key, value, valueBase64, headers, time"),
        (#"{"key":"a","key":"b"}"#, "'key' occurs twice"),
        (#"{"key":null,"k\u0065y":"b"}"#, "'key' occurs twice"),
        (#"{"value":"a","valueBase64":"YQ=="}"#, "both given"),
        (#"{"headers":[{"name":"a","value":"b","v":1}]}"#, "'v' is no member: name, value"),
        (#"{"headers":[{"name":"a","value":"b","name":"c"}]}"#, "'name' occurs twice"),
        (#"{"headers":[{"name":"a"}]}"#, "each header has a name and a value"),
        (#"{"headers":{"name":"a"}}"#, "a JSON object"),
        (#"{"key":"\ud800"}"#, "a JSON object"),
    ])
    func `explain refuses a wrong record and says what is right`(
        body: String, remedy: String
    ) async throws {
        let source = ExplainSource(WorkerControl(), plan: WorkerPlan(try configuration("")))
        let answer = await source.answer(post(body))
        #expect(answer.status == 400 && text(answer).contains(remedy))
        let method = HTTPRequest(method: .delete, path: "/explain")
        #expect(await source.answer(method).status == 405)
    }

    @Test func `explain refuses a key that is not UTF-8, and takes JSON's null for nothing`()
        async throws
    {
        let source = ExplainSource(WorkerControl(), plan: WorkerPlan(try configuration("")))
        let body = Array(#"{"key":"a"#.utf8) + [0xFF] + Array(#""}"#.utf8)
        let answer = await source.answer(
            HTTPRequest(method: .post, path: "/explain", body: body))
        #expect(answer.status == 400 && text(answer).contains("is not UTF-8"))
        let question = try EventQuestion(
            body: Array(#"{"key":"a","value":null,"valueBase64":"AA==","headers":null}"#.utf8))
        #expect(question.key == Array("a".utf8) && question.value == [0])
        #expect(question.headers.isEmpty && question.time == nil)
    }

    @Test func `explain takes a few questions at a time, and no more`() async throws {
        let control = WorkerControl()
        let source = ExplainSource(control, plan: WorkerPlan(try configuration("")))
        let tasks = (0..<ExplainSource.openMax).map { _ in
            Task { await source.answer(get(["subject": "door"])).status }
        }
        var questions: [PlannerQuestion] = []
        try await waitUntil("the questions") {
            questions += control.takeQuestions()
            return questions.count == tasks.count
        }
        let refused = await source.answer(get(["subject": "door"]))
        #expect(refused.status == 503 && text(refused).contains("ask again later"))
        for question in questions {
            guard case .tokens(_, let answer) = question else {
                Issue.record("\(question)")
                continue
            }
            answer.tell(TokenExplanation())
        }
        for task in tasks { #expect(await task.value == 200) }
    }

    @Test func `explain is given up when the planner does not answer`() async throws {
        let control = WorkerControl()
        let source = ExplainSource(
            control, plan: WorkerPlan(try configuration("")), patience: .milliseconds(10))
        let answer = await source.answer(get(["subject": "door"]))
        #expect(answer.status == 503 && text(answer).contains("has not answered in time"))
        let questions = control.takeQuestions()
        #expect(questions.count == 1 && questions[0].isGivenUp)
    }

    @Test func `questions to the planner are bounded, and those given up make room`() {
        let control = WorkerControl()
        let answers = (0..<100).map { _ in AwaitedAnswer<WorkerStatus?>() }
        let taken = answers.count { control.ask(.status($0)) }
        #expect(taken > 4 && taken < 20)
        for answer in answers { answer.tell(nil) }
        let next = AwaitedAnswer<WorkerStatus?>()
        #expect(control.ask(.status(next)))
        #expect(control.takeQuestions().count == 1 && control.takeQuestions().isEmpty)
    }
}
