// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSSimulator
internal import PushModel
internal import Testing

@Suite struct `The APNs simulator's command language` {
    @Test func `the command language has every command`() throws {
        let gone = { ScriptedAnswer.gone("Unregistered", $0) }
        let rows: [(String, SimulatorCommand)] = [
            ("streams 5", .streamLimit(5)), ("refuse 7", .refuseStreams(7)),
            ("goaway", .goAway(reason: nil, streamsBelow: 0)),
            ("goaway Shutdown", .goAway(reason: "Shutdown", streamsBelow: 0)),
            ("goaway below 3", .goAway(reason: nil, streamsBelow: 3)),
            ("goaway IdleTimeout below 3", .goAway(reason: "IdleTimeout", streamsBelow: 3)),
            ("reset connections", .resetConnections), ("reset streams", .resetStreams(8)),
            ("reset streams REFUSED_STREAM", .resetStreams(7)),
            ("reset streams 2", .resetStreams(2)),
            ("stall on", .stall(true)), ("stall off", .stall(false)),
            ("blackhole on", .blackHole(true)), ("blackhole off", .blackHole(false)),
            ("  delay\t50ms ", .delay(.milliseconds(50))),
            ("delay uniform 1ms..1.5s", .delay(.uniform(.milliseconds(1) ... .milliseconds(1500)))),
            (
                "delay exponential 20ms",
                .delay(.exponential(mean: .milliseconds(20), cap: .milliseconds(200)))
            ),
            (
                "delay exponential 20ms cap 1s",
                .delay(.exponential(mean: .milliseconds(20), cap: .seconds(1)))
            ),
            ("idle 5s", .idleMax(.seconds(5))), ("idle off", .idleMax(.zero)),
            ("jwt age 1h", .providerTokenAgeMax(.seconds(3600))),
            ("jwt update 20m", .providerTokenUpdateMin(.seconds(1200))),
            ("jwt skew 5s", .providerTokenClockSkewMax(.seconds(5))),
            ("key ABCDE12345 off", .acceptKey("ABCDE12345", false)),
            ("key ABCDE12345 on", .acceptKey("ABCDE12345", true)),
            ("tokens gap 2s", .deviceTokenGapMin(.seconds(2))),
            ("tokens gap off", .deviceTokenGapMin(.zero)),
            ("tokens topics off", .judgeTokenTopic(false)),
            ("tokens environments on", .judgeTokenEnvironment(true)),
            ("tokens bytes 32..100", .deviceTokenBytes(32...100)),
            ("token AA a.b", .assignToken("aa", topic: "a.b", .production)),
            ("token aa a.b production", .assignToken("aa", topic: "a.b", .production)),
            ("token aa a.b development", .assignToken("aa", topic: "a.b", .development)),
            ("rules clear", .rules([])),
            ("answer 413:PayloadTooLarge", .answer(.reason(413, "PayloadTooLarge"))),
            ("answer 500", .answer(.emptyBody(500))), ("answer 502:html", .answer(.html(502))),
            ("answer 499:NeverHeardOf", .answer(.reason(499, "NeverHeardOf"))),
            ("answer reset:CANCEL", .answer(.reset(8))), ("answer silence", .answer(.silence)),
            ("answer 410:Unregistered", .answer(gone(.fromNow(.zero)))),
            ("answer 410:Unregistered died none", .answer(gone(.absent))),
            ("answer 410:Unregistered died before 1m", .answer(gone(.fromNow(.seconds(-60))))),
            ("answer 410:Unregistered died after 1m", .answer(gone(.fromNow(.seconds(60))))),
            (
                "answer 503:ServiceUnavailable share 12.5% for 10s token 00FC",
                .addRule(
                    ScriptedRule(
                        tokenPrefix: "00fc", share: 0.125,
                        answer: .reason(503, "ServiceUnavailable"), lasting: .seconds(10)))
            ),
            (
                "answer 500 connections 2..4",
                .addRule(ScriptedRule(connections: 2...4, answer: .emptyBody(500)))
            ),
            (
                "answer 500 address 127.0.0.2",
                .addRule(ScriptedRule(address: "127.0.0.2", answer: .emptyBody(500)))
            ),
        ]
        for (line, command) in rows {
            #expect(try CommandLanguage.parse(line) == .perform(command), "\(line)")
        }
        #expect(try CommandLanguage.parse("status") == .status)
        #expect(try CommandLanguage.parse("help") == .help)
        #expect(try CommandLanguage.parse("quit") == .quit)
        let verbs = rows.compactMap { $0.0.split(whereSeparator: \.isWhitespace).first }
        let all = Set(verbs.map(String.init)).union(["status", "help", "quit"])
        #expect(all == Set(CommandLanguage.verbs))
        let lines = CommandLanguage.help.split(separator: "\n")
        for verb in all { #expect(lines.contains { $0.hasPrefix("\(verb) ") }, "\(verb)") }
        #expect(lines.allSatisfy { $0.count <= 80 })
    }

    @Test func `the command language says what is wrong, where, and what would do`() {
        let rows: [(String, Int, String)] = [
            ("", 1, "nothing; give a command; help lists them"),
            ("dance", 1, "'dance' is no command; help lists them"),
            ("streams", 2, "nothing; give a number of streams from 0 to 1000000"),
            ("streams -1", 2, "'-1' will not do; give a number of streams from 0 to 1000000"),
            ("streams 5 6", 3, "'6' is one word too many; leave it out"),
            ("stall maybe", 2, "'maybe' will not do; give on or off"),
            ("delay 50", 2, "'50' will not do; give a time such as 250ms, 1.5s, 20m or 2h"),
            ("delay infs", 2, "'infs' will not do; give a time"),
            ("delay 25h", 2, "'25h' will not do; give a time"),
            ("delay uniform 2s..1s", 3, "'2s..1s' will not do; give two times"),
            ("delay exponential 1s cap", 5, "nothing; give a time"),
            ("jwt age 500ms", 3, "provider tokens are dated in seconds; give whole seconds"),
            ("jwt", 2, "nothing; give age or update or skew"),
            ("tokens bytes 9..8", 3, "'9..8' will not do; give lengths as N..N, from 1 to 200"),
            ("token abc a.b", 2, "'abc' is half a byte too long; give whole bytes"),
            ("token xy a.b", 2, "'xy' will not do; give a device token in hexadecimal"),
            ("token ab", 3, "nothing; give a topic"),
            ("token ab a.b moon", 4, "'moon' will not do; give development"),
            ("answer 600:Bad", 2, "'600:Bad' will not do; give STATUS, STATUS:REASON"),
            ("answer 500:a\"b", 2, "'a\"b' will not do; give a reason of at most 64 letters"),
            ("answer 410:Unregistered@ff", 2, "'Unregistered@ff' will not do; give a reason"),
            ("answer 500:X share 5", 4, "'5' will not do; give a share such as 5% or 0.1%"),
            ("answer 500:X died none", 3, "only a 410 says when a token died; leave it out"),
            ("answer reset:WHAT", 2, "'WHAT' will not do; give an HTTP/2 error code"),
            ("rules", 2, "nothing; give clear"),
            ("quit now", 2, "'now' is one word too many; leave it out"),
        ]
        for (line, word, text) in rows {
            let error = #expect(throws: CommandError.self, "\(line)") {
                try CommandLanguage.parse(line)
            }
            let description = error?.description ?? ""
            #expect(description.hasPrefix("word \(word): \(text)"), "\(line): \(description)")
        }
        #expect(throws: CommandError.self) {
            try CommandLanguage.parse("goaway " + String(repeating: "x", count: 1018))
        }
    }

    @Test func `the command language has scripts, that are read whole or not at all`() throws {
        let script = try SimulatorScript(
            """
            # a bad day
            from first request

            at 0s streams 10   # few
            every 1.5s goaway Shutdown
            """)
        #expect(script.origin == .firstRequest)
        #expect(
            script.entries.map(\.after) == [.zero, .milliseconds(1500)]
                && script.entries.map(\.period) == [nil, .milliseconds(1500)])
        let rows: [(String, String)] = [
            ("at 1s stall on\n\nat 1s dance", "line 3, word 3: 'dance' is no command"),
            ("at 1s", "line 1, word 3: nothing; give a command"),
            ("at soon stall on", "line 1, word 2: 'soon' will not do; give a time"),
            ("every 1ms stall on", "line 1, word 2: this period is too short; 10ms is the least"),
            ("stall on", "line 1, word 1: 'stall' will not do; give at or every or from"),
            ("at 1s status", "line 1, word 3: 'status' has nobody to answer to"),
            ("at 1s quit\nfrom start", "line 2, word 1: 'from' comes too late"),
            (String(repeating: "\n", count: 10_000), "line 10001, word 1: more than 10000 lines"),
        ]
        for (text, expected) in rows {
            let error = #expect(throws: CommandError.self) { try SimulatorScript(text) }
            #expect(error?.description.hasPrefix(expected) == true, "\(error!)")
        }
    }
}

extension SimulatorCommand {
    fileprivate static func answer(_ answer: ScriptedAnswer) -> SimulatorCommand {
        .addRule(ScriptedRule(answer: answer))
    }
}
