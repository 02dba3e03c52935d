// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Delivery
internal import Intake
internal import PushModel
internal import RecordFormats
internal import Testing

@testable internal import Pipeline

@Suite struct `What explain says of tokens` {
    private let token: [UInt8] = [1, 2, 3]

    // MARK: Which tokens

    @Test func `a subject's tokens are named with class, kind and registration time`() throws {
        let fixture = PipelineFixture()
        fixture.registerControl("A", token, shows: ["door"], kind: "lock")
        fixture.register("B", [.device([9], shows: ["door"])], environment: .development)
        let tokens = fixture.explain(subject: "door")
        try #require(tokens.count == 2)
        #expect(tokens[0].id == PipelineFixture.tokenID(of: token))
        #expect(tokens[0].app == PipelineFixture.app && tokens[0].environment == .production)
        #expect(tokens[0].tokenClass == .control)
        #expect(tokens[0].apnsTopic == "com.example.Home.push-type.controls")
        #expect(tokens[0].places.shows.map(\.kind) == ["lock"] && tokens[0].places.rows == 1)
        #expect(tokens[0].isRegistered && tokens[0].registeredAt == fixture.now.wall)
        #expect(tokens[0].places.shows[0].hearsChanges && !tokens[1].places.shows[0].hearsChanges)
        #expect(tokens[1].environment == .development && tokens[1].tokenClass == .device)
        #expect(fixture.explain(subject: "dor").isEmpty)
    }

    @Test func `a subject is looked for in every app unless one is named`() {
        let mail = "com.example.Mail"
        let fixture = PipelineFixture(apps: [PipelineFixture.app, mail])
        fixture.registerControl("A", [1], shows: ["door"])
        fixture.register("A", [.control([2], shows: ["door"])], app: mail)
        #expect(fixture.explain(subject: "door").map(\.app) == [PipelineFixture.app, mail])
        #expect(fixture.explain(subject: "door", app: mail).map(\.app) == [mail])
        let unknown = fixture.explain(.subject(Array("door".utf8), app: "com.example.Nobody"))
        #expect(unknown.tokens.isEmpty && unknown.gaps.isEmpty)
    }

    @Test func `an installation's tokens are those of all its handlers and environments`() {
        let fixture = PipelineFixture()
        fixture.registerControl("A", [1], shows: ["door", "hall"])
        fixture.registerControl("A", [2], shows: ["door"], environment: .development)
        fixture.registerControl("B", [3], shows: ["door"])
        let tokens = fixture.explain(installation: "A")
        #expect(tokens.map(\.environment) == [.production, .development])
        #expect(tokens.map(\.subjects) == [["door", "hall"], ["door"]])
        let name = ExplainedToken.RegistrationName(installation: "A", handler: "H")
        #expect(tokens.allSatisfy { $0.places.registrations == [name] })
        let some = fixture.explain(
            .installation("A", app: nil, environment: .development, handler: "H"))
        #expect(some.tokens.map(\.environment) == [.development])
        let none = fixture.explain(.installation("A", app: nil, environment: nil, handler: "I"))
        #expect(none.tokens.isEmpty && none.gaps.isEmpty)
    }

    @Test(arguments: [0, 3])
    func `an installation's registrations are gone through in parts, however large`(
        replacedAfter: Int
    ) throws {
        let fixture = PipelineFixture()
        let subjects = (0..<1000).map { "s\($0)" }
        for handler in ["H1", "H2"] {
            fixture.register("A", [.control(token, shows: subjects)], handler: handler)
        }
        var parts = 0
        let question = TokenQuestion.installation("A", app: nil, environment: nil, handler: nil)
        let tokens = fixture.explain(question) { part in
            parts = part
            guard part == replacedAfter else { return }
            fixture.register("A", [.control(token, shows: ["s0"])], handler: "H1")
        }.tokens
        #expect(tokens.count == 1)
        let places = try #require(tokens.first).places
        #expect(places.registrations.map(\.handler) == ["H1", "H2"])
        // A registration that shrinks meanwhile is left where it ends.
        #expect(places.rows == (replacedAfter == 0 ? 2000 : 1300))
        #expect(places.shows.count == ExplainedToken.shownMax)
        // A part looks at 100 rows at most, and each planner turn has one.
        #expect(parts >= places.rows / 100)
    }

    @Test func `an installation's answer says that an app has too many handlers to try`() {
        let fixture = PipelineFixture()
        fixture.checksEachCall = false
        for number in 0...HandlerNames.countMax {
            fixture.register("A", [.control([UInt8(number)], shows: ["s"])], handler: "H\(number)")
        }
        let question = TokenQuestion.installation("A", app: nil, environment: nil, handler: nil)
        let all = fixture.explain(question)
        #expect(all.tokens.count == HandlerNames.countMax && all.gaps == [.manyHandlers])
        let last = TokenQuestion.installation(
            "A", app: nil, environment: nil, handler: "H\(HandlerNames.countMax)")
        #expect(fixture.explain(last).tokens.count == 1)
        #expect(fixture.explain(last).gaps.isEmpty)
    }

    @Test func `a token is found by its ID under every APNs topic, with all that it shows`() {
        let fixture = PipelineFixture()
        fixture.checksEachCall = false
        for number in 0..<2000 {
            let other = [UInt8(truncatingIfNeeded: number), UInt8(number >> 8), 77]
            fixture.registerControl("I\(number)", other, shows: ["s\(number)"])
        }
        fixture.registerControl("A", token, shows: ["door"])
        fixture.registerControl("B", token, shows: ["hall"])
        fixture.registerControl("C", token, shows: ["roof"], environment: .development)
        let tokens = fixture.explain(token: token).sorted {
            $0.environment.name > $1.environment.name
        }
        #expect(tokens.map(\.environment) == [.production, .development])
        #expect(tokens.map(\.subjects) == [["door", "hall"], ["roof"]])
    }

    @Test func `a token is found although registrations come and go while it is looked for`() {
        let fixture = PipelineFixture()
        fixture.checksEachCall = false
        for number in 0..<1000 {
            fixture.registerControl(
                "I\(number)", [UInt8(number & 255), UInt8(number >> 8), 7], shows: ["s"])
        }
        fixture.registerControl("A", token, shows: ["door"])
        let question = TokenQuestion.token(PipelineFixture.tokenID(of: token))
        let found = fixture.explain(question) { part in
            fixture.unregister("I\(part)")
            for number in 0..<100 {
                fixture.registerControl(
                    "N\(part)-\(number)", [UInt8(part), UInt8(number), 8], shows: ["s"])
            }
        }
        #expect(found.tokens.map(\.subjects) == [["door"]])
    }

    @Test func `a large audience is described in part, and the rest is counted`() {
        let fixture = PipelineFixture()
        fixture.checksEachCall = false
        let count = TokenExplanation.tokensMax + 50
        for number in 0..<count {
            fixture.registerControl("I\(number)", [UInt8(number & 255), 9], shows: ["door"])
        }
        let explanation = fixture.explain(.subject(Array("door".utf8), app: nil))
        #expect(explanation.tokens.count == TokenExplanation.tokensMax && explanation.more == 50)
    }

    // MARK: Suppressions

    @Test func `a suppressed token has the answer and the day of its suppression`() throws {
        let fixture = PipelineFixture()
        fixture.registerControl("A", token, shows: ["door"])
        let registeredAt = fixture.now.wall
        fixture.pass(.seconds(5))
        fixture.event("door")
        fixture.answer(fixture.take()[0], 410, .expiredToken)
        let found = try #require(fixture.explain(installation: "A").first)
        let suppression = try #require(found.suppression)
        #expect(found.isSuppressed && found.isRegistered)
        #expect(suppression.status == 410 && suppression.reason == "ExpiredToken")
        #expect(suppression.registeredAt == registeredAt)
        #expect(suppression.recordedAt?.seconds == fixture.now.wall.seconds)

        fixture.pass(.seconds(60))
        fixture.registerControl("A", token, shows: ["door"])
        let again = try #require(fixture.explain(installation: "A").first)
        #expect(!again.isSuppressed && again.suppression == suppression)
    }

    @Test func `a replayed suppression has its record's time, and its token is found`() throws {
        let fixture = PipelineFixture()
        let value =
            #"{"v":1,"status":400,"reason":"BadDeviceToken","registeredAt":"#
            + #""\#(fixture.now.wall.rfc3339)"}"#
        let key = "production/com.example.Home.push-type.controls/010203"
        let problem = Array(key.utf8).withUnsafeBytes { key in
            Array(value.utf8).withUnsafeBytes { value in
                fixture.pipeline.suppressionRecord(
                    key: key, value: value, timestamp: WallTime(milliseconds: 1_700_000_000_500))
            }
        }
        #expect(problem == nil)
        let found = try #require(fixture.explain(token: token).first)
        #expect(!found.isRegistered && found.isSuppressed)
        #expect(found.suppression?.reason == "BadDeviceToken")
        #expect(found.suppression?.recordedAt == WallTime(milliseconds: 1_700_000_000_000))
    }

    // MARK: States

    @Test func `a token is idle, queued, in flight with a follow-up, and resting in turn`() {
        let fixture = PipelineFixture()
        fixture.registerControl("A", token, shows: ["door"])
        func state() -> ExplainedToken { fixture.explain(subject: "door")[0] }
        #expect(state().states.isEmpty && state().outcomes.isEmpty)
        fixture.event("door")
        #expect(state().states == [.queued] && state().pushes[0].type == .controls)
        let push = fixture.take()[0]
        fixture.event("door")
        #expect(state().states == [.inFlight] && state().pushes[0].hasFollowUp)
        fixture.answer(push, 503, .serviceUnavailable, retryAfterSeconds: 100)
        #expect(state().states == [.resting(until: fixture.now.wall + .seconds(100))])
        #expect(state().pushes[0].attempts == 1 && !state().pushes[0].hasFollowUp)
    }

    @Test func `pushes with payloads are all shown, in memory and in the deferred topic`() {
        let owner = DeferredOwner()
        let fixture = owner.pipeline
        fixture.register("D", [.device([9], shows: ["game"])])
        fixture.event("game", #"{"payload":{"aps":{"alert":"a"}},"collapseID":"one"}"#)
        fixture.event("game", #"{"payload":{"aps":{"alert":"b"}},"collapseID":"two"}"#)
        let pushes = fixture.explain(subject: "game")[0].pushes
        #expect(pushes.map(\.state) == [.queued, .queued] && pushes.allSatisfy(\.hasPayload))
        let sent = fixture.take()
        fixture.answer(sent[0], 503, .serviceUnavailable, retryAfterSeconds: 1000)
        fixture.answer(sent[1], 200)
        let until = fixture.now.wall + .seconds(1000)
        owner.deferred.produce()
        owner.deferred.read()
        let deferred = fixture.explain(token: [9])[0].pushes
        #expect(deferred.map(\.state) == [.deferred(until: until)])
        #expect(deferred.map(\.type) == [.alert] && deferred.map(\.attempts) == [1])
    }

    @Test func `a push that waits for a circuit breaker names it`() {
        let fixture = PipelineFixture()
        fixture.registerControl("A", token, shows: ["door"])
        fixture.registerControl("B", [7], shows: ["hall"], environment: .development)
        fixture.event("door")
        fixture.answer(fixture.take()[0], 403, .invalidProviderToken)
        let breakers = fixture.explain(subject: "door")[0].breakers
        #expect(breakers.map(\.name) == ["credential team in production"])
        #expect(breakers.map(\.cause) == [.credentialRefused(.invalidProviderToken)])
        #expect(fixture.explain(subject: "hall")[0].breakers.isEmpty)
    }

    @Test func `a token with a fault of its own says until when its pushes wait`() throws {
        let fixture = PipelineFixture { settings in
            settings.retryBackoff = Backoff(least: .seconds(1), most: .seconds(2))
        }
        fixture.registerControl("A", token, shows: ["door"])
        for number in 10..<20 as Range<UInt8> {
            fixture.registerControl("I\(number)", [number], shows: ["hall"])
        }
        for _ in 0..<3 {
            fixture.event("hall")
            fixture.event("door")
            for push in fixture.take() {
                if push.token == token {
                    fixture.answer(push, 500, .internalServerError)
                } else {
                    fixture.answer(push, 200)
                }
            }
            if fixture.explain(subject: "door")[0].heldUntil != nil { break }
            fixture.pass(.seconds(3))
        }
        let heldUntil = try #require(fixture.explain(subject: "door")[0].heldUntil)
        #expect(heldUntil > fixture.now.wall)
        #expect(fixture.explain(subject: "hall")[0].heldUntil == nil)
    }
}
