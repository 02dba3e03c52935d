// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import Testing

@testable internal import Pipeline
@testable internal import Worker
@testable internal import lamplighter

@Suite struct `The text of explain` {
    private let time = "2026-11-20T14:03:12.345Z"

    private func token(
        _ state: TokenReply.State = .idle, _ adjust: (inout TokenReply.Token) -> Void = { _ in }
    ) -> TokenReply.Token {
        var token = TokenReply.Token(
            tokenID: "3f2a000000000000", app: "com.example.Home", environment: "production",
            class: "control", apnsTopic: "com.example.Home.push-type.controls",
            registrations: [
                TokenReply.Registration(installation: "6F1C", handler: "GarageControls")
            ], registered: true, registeredAt: time,
            shows: [
                TokenReply.Shown(
                    subject: "door-42", kind: "com.example.garageDoor", hearsChanges: true)
            ], rows: 1, state: state, pushes: [], breakers: [], outcomes: [])
        adjust(&token)
        return token
    }

    private func reply(_ tokens: [TokenReply.Token], phase: String = "running") -> TokenReply {
        TokenReply(time: time, phase: phase, tokens: tokens, more: 0, gaps: [])
    }

    private func lines(_ tokens: TokenReply.Token...) -> [String] {
        ExplainText.lines(
            asking: .installation("6F1C"), answers: [("http://worker-1", reply(tokens))],
            registrations: nil, wasKafkaAsked: false)
    }

    private func push(_ state: TokenReply.State, until: String? = nil) -> TokenReply.Push {
        TokenReply.Push(
            state: state, until: until, type: "controls", hasPayload: false, failedTries: 1,
            expiresAt: time, hasFollowUp: false)
    }

    private func outcome(
        _ outcome: String, _ status: Int? = nil, _ reason: String? = nil
    ) -> TokenReply.Outcome {
        TokenReply.Outcome(
            time: time, type: "controls", outcome: outcome, status: status, reason: reason,
            apnsID: "id", topic: "events", partition: 3, offset: 17)
    }

    @Test func `a suppressed token has the answer, its time and what to do`() {
        let lines = lines(
            token(.suppressed) { token in
                token.suppression = TokenReply.Suppression(
                    status: 410, reason: "Unregistered", since: time, registeredAt: time,
                    holds: true)
            })
        #expect(
            lines == [
                "Installation 6F1C: 1 token.", "",
                "Token 3f2a000000000000 (control of com.example.Home, production; "
                    + "kind com.example.garageDoor; shows door-42) of installation 6F1C, "
                    + "handler GarageControls:",
                "  Suppressed since 2026-11-20 14:03 UTC because APNs answered 410 Unregistered. It "
                    + "gets pushes again when the app registers it anew.",
            ])
    }

    @Test func `a token that is wrong for its environment says so`() throws {
        let lines = lines(
            token(.suppressed) { token in
                token.suppression = TokenReply.Suppression(
                    status: 400, reason: "BadDeviceToken", registeredAt: time, holds: true)
            })
        let last = try #require(lines.last)
        #expect(last.contains("Suppressed because APNs answered 400 BadDeviceToken."))
        #expect(last.contains("a build from Xcode is development"))
    }

    @Test func `a push that waits says for what, and until when`() {
        let waiting = lines(
            token(.resting) { token in
                token.pushes = [push(.resting, until: time)]
                token.breakers = [
                    TokenReply.Breaker(
                        name: "credential home in production",
                        cause: "APNs answers InvalidProviderToken: check the key",
                        nextProbeSeconds: 7)
                ]
                token.heldUntil = time
                token.sentToday = TokenReply.SentToday(pushes: 1, budget: 60)
            })
        let expected = """
              A controls push waits until 2026-11-20 14:03:12 UTC after 1 failed try; it \
            expires at 2026-11-20 14:03:12 UTC.
              Pushes wait for the circuit breaker of credential home in production: APNs \
            answers InvalidProviderToken: check the key; the next probe is in 7 s.
              APNs has failed for this token again and again while it took pushes to others: \
            its pushes wait until 2026-11-20 14:03:12 UTC, then one is tried.
              Sent 1 push today (UTC); its budget is 60.
            """
        #expect(waiting.dropFirst(3).joined(separator: "\n") == expected)
        let words: [(TokenReply.State, String)] = [
            (.queued, "stands in the queue"), (.inFlight, "is on its way to APNs"),
            (.deferred, "waits in the deferred topic until"),
        ]
        for (state, text) in words {
            let lines = lines(token(state) { $0.pushes = [push(state, until: time)] })
            #expect(lines.last?.contains(text) == true)
        }
    }

    @Test func `each outcome says what APNs answered, what follows, and for which event`() {
        let lines = lines(
            token { token in
                token.outcomes = [
                    outcome("answered", 200), outcome("answered", 503, "ServiceUnavailable"),
                    outcome("unknown"), outcome("expired"),
                ]
                token.outcomes[0].type = nil
            })
        let start = "  2026-11-20 14:03:12 UTC: "
        let end = " (for events/3@17, apns-id id)."
        let expected = """
            \(start)APNs accepted a push\(end)
            \(start)APNs answered 503 ServiceUnavailable to a controls push: a fault at APNs; \
            a worker waits and sends it again\(end)
            \(start)a controls push got no answer, and is sent again\(end)
            \(start)a controls push expired before it was sent\(end)
              APNs has taken the latest push. Whether and when the phone acts on it is up to \
            Apple and the app.
            """
        #expect(lines.dropFirst(3).joined(separator: "\n") == expected)
    }

    @Test func `a token of which nothing is known but its registration says how to go on`() {
        #expect(lines(token()).last?.contains("lamplighter explain --event") == true)
        let device = lines(
            token { token in
                token.class = "device"
                token.shows[0].hearsChanges = false
            })
        #expect(device.contains { $0.contains("its registration does not say onChange") })
        let gone = lines(
            token(.unregistered) { token in
                token.registered = false
                token.suppression = TokenReply.Suppression(
                    status: 410, reason: "", since: time, registeredAt: time, holds: true)
            })
        #expect(gone.contains { $0.contains("No registration has it.") })
        #expect(gone.last?.hasSuffix("because APNs answered 410.") == true)
    }

    @Test(
        arguments: [
            ("control", true, nil), ("widget", true, nil), ("device", true, nil),
            ("device", false, "onChange: background. An event with a payload reaches it."),
            ("location", true, nil), ("location", false, "pushType: location reaches it"),
            ("liveActivity", true, "push-to-start token: events with the start"),
            ("liveActivity", false, "events with an update or the end of one reach it"),
            ("channel", false, "are broadcast once to all that follow it"),
            ("complication", false, "pushType: complication reach it, and no others"),
            ("voip", false, "pushType: voip reach it, and no others"),
            ("fileProvider", false, "pushType: fileprovider reach it, and no others"),
            ("pushToTalk", false, "pushType: pushtotalk reach it, and no others"),
            ("kiosk", false, "the class's push type reach it"), ("kiosk", true, nil),
        ] as [(String, Bool, String?)])
    func `a token's text says which events reach it`(
        tokenClass: String, hearsChanges: Bool, sentence: String?
    ) {
        let lines = lines(
            token { token in
                token.class = tokenClass
                token.shows[0].hearsChanges = hearsChanges
            })
        #expect(lines.count == (sentence == nil ? 4 : 5), "\(lines)")
        if let sentence { #expect(lines[3].contains(sentence), "\(lines)") }
        #expect(lines.last?.contains("Nothing waits, and no recent push") == true)
        #expect(!lines.joined().contains("No event leads"))
    }

    @Test func `a channel's text is about those who follow it`() {
        let taken = lines(
            token { token in
                token.class = "channel"
                token.outcomes = [outcome("answered", 200)]
            })
        #expect(taken.last?.contains("whose Live Activity has subscribed") == true)
        let suppressed = lines(
            token(.suppressed) { token in
                token.class = "channel"
                token.suppression = TokenReply.Suppression(
                    status: 400, reason: "BadChannelId", registeredAt: time, holds: true)
            })
        #expect(suppressed.contains { $0.contains("lamplighter channels list") })
        #expect(!suppressed.joined().contains("Xcode"))
    }

    @Test func `a record that is left out has the reason`() {
        let filtered = event([]) { reply in
            reply.event = nil
            reply.filtered = true
            reply.filteredBecause = "/a must be above: 0, and the record has an object"
        }
        #expect(
            filtered == [
                "The binding of events leaves this record out, so it reaches nobody: /a must be "
                    + "above: 0, and the record has an object."
            ])
        let older = event([]) { reply in
            reply.event = nil
            reply.filtered = true
        }
        #expect(older[0].hasSuffix("or a field is missing."))
    }

    @Test func `several workers are told apart, and the index is taken from the first`() {
        let lines = ExplainText.lines(
            asking: .subject("door-42"),
            answers: [
                ("one", reply([token { $0.outcomes = [outcome("answered", 200)] }])),
                ("two", reply([token(.queued) { $0.pushes = [push(.queued)] }])),
                ("three", reply([], phase: "replaying")),
            ], registrations: nil, wasKafkaAsked: false)
        #expect(lines[0].hasPrefix("three still reads registrations"))
        #expect(lines[1] == "Subject door-42: 1 token.")
        #expect(lines[4].hasPrefix("  On one: 2026-11-20 14:03:12 UTC: APNs accepted"))
        #expect(lines[5].hasPrefix("  On two: A controls push stands in the queue"))
        #expect(lines[6].hasPrefix("  APNs has taken the latest push.") && lines.count == 7)
    }

    @Test func `a registration in Kafka names its tokens, and those that it lacks`() {
        var unnamed = token { $0.outcomes = [outcome("answered", 200)] }
        unnamed.registrations = []
        let registration = FoundRegistration(
            environment: "production", app: "com.example.Home", installation: "6F1C",
            handler: "GarageControls", writtenAt: time, problem: nil,
            targets: [
                FoundRegistration.Target(
                    class: "control", tokenID: unnamed.tokenID, kinds: [], subjects: ["door-42"]),
                FoundRegistration.Target(
                    class: "control", tokenID: nil, kinds: ["lamp"], subjects: []),
                FoundRegistration.Target(
                    class: "control", tokenID: "0000000000000001", kinds: [], subjects: []),
            ])
        let lines = ExplainText.lines(
            asking: .installation("6F1C"), answers: [("one", reply([unnamed]))],
            registrations: [registration], wasKafkaAsked: true)
        #expect(lines[2].hasSuffix("of installation 6F1C, handler GarageControls:"))
        #expect(
            lines[6]
                == "Registration production/com.example.Home/6F1C/GarageControls, written "
                + "2026-11-20 14:03 UTC:")
        #expect(lines[7].contains("Its control of kind lamp has no token yet"))
        #expect(lines[8].contains("The workers do not know token 0000000000000001"))
        #expect(lines.count == 9)
    }

    @Test func `a registration with a token that cannot be read is not said to lack one`() {
        let registration = FoundRegistration(
            environment: "production", app: "com.example.Home", installation: "6F1C", handler: "H",
            writtenAt: time, problem: "token must be an even number of hexadecimal digits",
            targets: [
                FoundRegistration.Target(class: "control", tokenID: nil, kinds: ["a"], subjects: [])
            ])
        let lines = ExplainText.lines(
            asking: .installation("6F1C"), answers: [("one", reply([]))],
            registrations: [registration], wasKafkaAsked: true)
        #expect(lines.last?.contains("No worker can read it: token must be") == true)
        #expect(!lines.contains { $0.contains("has no token yet") })
    }

    @Test func `nobody by that name and too many handlers say so`() {
        var empty = reply([])
        empty.gaps = ["manyHandlers"]
        let lines = ExplainText.lines(
            asking: .subject("dor"), answers: [("one", empty)], registrations: nil,
            wasKafkaAsked: false)
        #expect(lines[0].contains("name it with --handler"))
        #expect(lines[1] == "Subject dor: 0 tokens.")
        #expect(lines[2].contains("case-sensitive") && lines[3].contains("--config"))
        #expect(TokenExplanation.Gap.allCases.map(\.rawValue).sorted() == empty.gaps.sorted())
    }

    @Test(
        arguments: [
            (.subject("dor"), "Subject dor: 0 tokens.", "No event reaches anybody by that name."),
            (
                .installation("6F1C"), "Installation 6F1C: 0 tokens.",
                "The workers know no registration of that installation."
            ),
            (
                .token("3f2a000000000000"), "Token ID 3f2a000000000000: 0 tokens.",
                "The workers know no token with that ID"
            ),
        ] as [(RegistrationSearch.Wanted, String, String)])
    func `no token is told in the words of the question`(
        wanted: RegistrationSearch.Wanted, first: String, second: String
    ) {
        let lines = ExplainText.lines(
            asking: wanted, answers: [("one", reply([]))], registrations: [], wasKafkaAsked: true)
        #expect(lines.count == 2 && lines[0] == first && lines[1].hasPrefix(second))
    }

    @Test func `registrations that Kafka did not give are not advised again`() {
        let lines = ExplainText.lines(
            asking: .subject("dor"), answers: [("one", reply([]))], registrations: nil,
            wasKafkaAsked: true)
        #expect(lines.count == 2 && !lines[1].contains("--config"))
        #expect(
            ExplainText.unread(because: "Kafka sends nothing")
                == "The registrations in Kafka could not be read, so that names of installations and "
                + "handlers, targets without a token, and registrations that no worker can read may "
                + "be missing: Kafka sends nothing.")
    }

    // MARK: Restrictions

    private func restriction(
        _ action: String, of what: String, about: String = "pushes", ended: Bool = false
    ) -> RestrictionReply {
        RestrictionReply(
            what: what, about: about, action: action, perSecond: action == "limit" ? 500 : nil,
            by: "anna", reason: "the backend is slow", at: time,
            until: action == "pause" ? time : nil, endedAt: ended ? time : nil,
            lift: ended ? nil : "lamplighter resume --app com.example.Home")
    }

    @Test func `a token's restrictions say who, since when, until when, why and how to lift them`()
    {
        let lines = lines(
            token { token in
                token.restrictions = [
                    restriction("pause", of: "app com.example.Home"),
                    restriction("limit", of: "class control"),
                    restriction("drop", of: "topic t", about: "events"),
                    restriction("drop", of: "app com.example.Home", ended: true),
                ]
            })
        let since = "(by anna since 2026-11-20 14:03:12 UTC, until"
        let end =
            "; \"the backend is slow\"). To end that: lamplighter resume --app com.example.Home"
        let paused: String =
            "  An operator has paused pushes of app com.example.Home: they wait "
            + "\(since) 2026-11-20 14:03:12 UTC\(end)"
        let limited: String =
            "  An operator has limited pushes of class control: all workers together send at most "
            + "500 a second, and further pushes wait \(since) it is resumed\(end)"
        let dropped: String =
            "  An operator has dropped events of topic t: they reach nobody "
            + "\(since) it is resumed\(end)"
        let lifted: String =
            "  An operator dropped pushes of app com.example.Home (by anna from 2026-11-20 14:03:12 "
            + "UTC until 2026-11-20 14:03:12 UTC; \"the backend is slow\")."
        // And not that no event has asked for a push.
        #expect(Array(lines.dropFirst(3)) == [paused, limited, dropped, lifted])
    }

    @Test func `a restriction of the configuration names its key, and no command`() throws {
        let scope = Restriction.Scope.pushes(app: "com.example.Home", tokenClass: nil)
        var explained = ExplainedRestriction(
            scope: scope,
            restriction: Restriction(
                .drop, by: ConfiguredRestriction.by, at: try #require(WallTime(rfc3339: time))))
        let inForce = RestrictionReply(explained)
        #expect(inForce.lift == nil)
        #expect(
            inForce.sentence
                == "The configuration drops pushes of app com.example.Home: none is sent (since "
                + "2026-11-20 14:03:12 UTC). To end that, take it out of planning.restrictions.")
        #expect(
            inForce.clause
                == "the configuration drops pushes of app com.example.Home (since 2026-11-20 "
                + "14:03:12 UTC)")
        explained.endedAt = explained.restriction.at + .seconds(8)
        let ended = RestrictionReply(explained)
        #expect(ended.lift == nil)
        #expect(
            ended.sentence
                == "The configuration dropped pushes of app com.example.Home (from 2026-11-20 14:03:12 "
                + "UTC until 2026-11-20 14:03:20 UTC).")
        #expect(
            ended.clause
                == "the configuration dropped pushes of app com.example.Home (from 2026-11-20 14:03:12 "
                + "UTC until 2026-11-20 14:03:20 UTC)")
    }

    @Test func `a push that was dropped names the drop`() {
        let lines = lines(
            token { token in
                token.outcomes = [outcome("dropped"), outcome("dropped")]
                token.outcomes[0].restriction = restriction("drop", of: "class control")
            })
        let expected = """
              2026-11-20 14:03:12 UTC: a controls push was dropped: an operator drops pushes of \
            class control (by anna since 2026-11-20 14:03:12 UTC, until it is resumed; \
            "the backend is slow") (for events/3@17, apns-id id).
              2026-11-20 14:03:12 UTC: a controls push was dropped: an operator wanted it (for \
            events/3@17, apns-id id).
            """
        #expect(lines.dropFirst(3).joined(separator: "\n") == expected)
    }

    @Test func `those of topics stand above the tokens, once`() {
        var paused = reply([token()])
        paused.restrictions = [restriction("pause", of: "topic events", about: "events")]
        let lines = ExplainText.lines(
            asking: .subject("door-42"), answers: [("one", paused), ("two", paused)],
            registrations: nil, wasKafkaAsked: false)
        #expect(lines[1].hasPrefix("An operator has paused events of topic events: they stay in"))
        #expect(lines.count { $0.contains("topic events") } == 1)
    }

    @Test(
        arguments: [
            (
                .pushes(app: "com.example.Home", tokenClass: .widget),
                "--app com.example.Home --class widget"
            ),
            (.pushes(app: nil, tokenClass: .control), "--class control"),
            (.topic("lamplighter.events"), "--topic lamplighter.events"),
            (.subject(Array("it's a door".utf8), app: "a"), #"--app a --subject 'it'\''s a door'"#),
            (.subject(Array("-x".utf8), app: "a"), "--app a --subject=-x"),
            (.subject(Array("--it's".utf8), app: "a"), #"--app a --subject='--it'\''s'"#),
        ] as [(Restriction.Scope, String)])
    func `the command that lifts a restriction can be pasted`(
        scope: Restriction.Scope, options: String
    ) {
        #expect(scope.resumeCommand == "lamplighter resume \(options)")
    }

    // MARK: Records

    @Test func `a record's text names what an operator has restricted`() {
        let dropped = event([EventReply.Result(result: "dropped", entries: 7)]) { reply in
            reply.restrictions = [restriction("drop", of: "subject \"door-42\"", about: "events")]
        }
        #expect(dropped[1] == "It would reach 0 of 7 that show it.")
        #expect(dropped[2].hasPrefix("An operator has dropped events of subject \"door-42\": they"))
        #expect(dropped.contains { $0.hasPrefix("No push to 7: an operator drops them") })
        let unreadable = event([]) { reply in
            reply.event = nil
            reply.unreadable = EventReply.Unreadable(code: "invalidJSON", message: "it ends early")
            reply.restrictions = [restriction("drop", of: "topic events", about: "events")]
        }
        #expect(unreadable.count == 2 && !unreadable[0].contains("dead letter"))
    }

    private func event(
        _ results: [EventReply.Result], _ adjust: (inout EventReply) -> Void = { _ in }
    ) -> [String] {
        var reply = EventReply(
            time: time, phase: "running", topic: "events",
            event: EventReply.Event(
                app: "com.example.Home", subject: "door-42", kinds: ["lamp"], time: time,
                expiresAt: time, expired: false, delaySeconds: 0),
            results: results, entries: [], unseen: 0, otherApps: [], breakers: [])
        adjust(&reply)
        return EventText.lines(reply)
    }

    @Test func `a record's text says whom it reaches, and of the others why not`() {
        let lines = event([
            EventReply.Result(result: "push", pushType: "controls", entries: 3),
            EventReply.Result(result: "otherKind", entries: 2),
        ]) { reply in
            reply.entries = [
                EventReply.Entry(
                    tokenID: "3f2a000000000000", environment: "production", class: "control",
                    kind: "lamp", result: "push", pushType: "controls")
            ]
        }
        #expect(
            lines == [
                "As a record of events it says that subject door-42 of com.example.Home has "
                    + "changed, for kinds lamp.",
                "It would reach 3 of 5 that show it.", "", "A controls push to 3:",
                "  token 3f2a000000000000 (control, production, kind lamp)", "  and 2 more", "",
                "No push to 2: the event is for other kinds. Add theirs to kinds, or leave kinds out.",
                "  and 2 more",
            ])
    }

    @Test(arguments: EventExplanation.Cause.allCases)
    func `a record's text has a sentence for each cause`(cause: EventExplanation.Cause) throws {
        let lines = event([EventReply.Result(result: cause.rawValue, entries: 1)])
        let sentence = try #require(lines.first { $0.hasPrefix("No push to 1: ") })
        #expect(sentence.count > 40 && sentence.hasSuffix("."))
    }

    @Test func `numbers that no worker counts end nothing`() {
        let most = EventReply.Result(result: "push", pushType: "controls", entries: .max)
        let least = EventReply.Result(result: "otherKind", entries: .min)
        let lines = event([most, most, least])
        #expect(lines.contains { $0.hasPrefix("It would reach 9223372036854775807 of ") })
    }

    @Test func `a record's text says that it is unreadable, expired, for nobody or another app`() {
        let unreadable = event([]) { reply in
            reply.event = nil
            reply.unreadable = EventReply.Unreadable(code: "invalidJSON", message: "it ends early")
        }
        #expect(unreadable.count == 1 && unreadable[0].contains("(invalidJSON): it ends early. It"))
        // simdjson's texts have a full stop.
        let ended = event([]) { reply in
            reply.event = nil
            reply.unreadable = EventReply.Unreadable(code: "invalidJSON", message: "Empty.")
        }
        #expect(ended[0].contains("(invalidJSON): Empty. It would become"))
        let expired = event([EventReply.Result(result: "expired", entries: 4)]) { reply in
            reply.event?.expired = true
        }
        #expect(expired[1].hasPrefix("It expired at 2026-11-20 14:03:12 UTC, so it reaches nobody"))
        let nobody = event([]) { reply in
            reply.otherApps = [EventReply.OtherApp(app: "com.example.Mail", entries: 2)]
        }
        #expect(nobody[1].hasPrefix("Nobody shows it"))
        #expect(nobody[2].hasPrefix("2 of com.example.Mail show the subject too"))
        let other = event([EventReply.Result(result: "otherClass", entries: 4)])
        #expect(
            other[1].hasPrefix("It would be passed over (outcome passedOver): 4 show it, but no"))
        let suppressed = event([
            EventReply.Result(result: "otherClass", entries: 4),
            EventReply.Result(result: "suppressed", entries: 1),
        ])
        #expect(suppressed[1] == "It would reach 0 of 5 that show it.")
    }
}
