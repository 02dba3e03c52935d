// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

/// The language of the simulator's flags, scripts and control socket: a line is a command.
package enum CommandLanguage {
    package enum Order: Hashable, Sendable {
        case perform(SimulatorCommand)
        /// Answer the counts as JSON.
        case status
        /// Answer the list of commands.
        case help
        case quit
    }

    /// The longest line that may be a command.
    package static let lineBytesMax = 1024

    /// The help text: lines of at most 80 columns, each with the words of a command first.
    package static let help = """
        streams N                 so many streams a connection, up or down, at once
        refuse N                  REFUSED_STREAM for the next N (each thread its own)
        goaway [REASON] [below N] GOAWAY, with JSON if there is a reason, the last
                                  stream named N streams under the highest seen
        reset connections         cut every connection with a TCP reset
        reset streams [CODE]      RST_STREAM on every open stream: CANCEL or another
                                  HTTP/2 error code, by name or 0 to 13
        stall on|off              read requests, never answer them, nor after off;
                                  PING is answered
        blackhole on|off          read and write nothing, PING included
        delay TIME                answer so much later
        delay uniform TIME..TIME  by a time drawn evenly
        delay exponential TIME [cap TIME]   drawn, with this mean; cap: 10 means
        idle TIME|off             400 IdleTimeout and GOAWAY after so long without a
                                  request
        jwt age TIME              the oldest provider token accepted (APNs: 60m)
        jwt update TIME           the least time between two of them on a connection
                                  (APNs: 20m)
        jwt skew TIME             how far in the future one may be issued
        key KEYID on|off          accept this key's provider tokens (at first: on)
        tokens gap TIME|off       429 to a device token pushed to sooner again
        tokens topics on|off      judge DeviceTokenNotForTopic (at first: on)
        tokens environments on|off   judge the other environment (at first: on)
        tokens bytes N..N         refuse other lengths (at first: 1..200)
        token HEX TOPIC [ENVIRONMENT]   whose a device token is, ahead of its first
                                  push, which says so otherwise
        answer WHAT [share N%] [token HEX] [connections N..N] [address IP]
               [for TIME] [died WHEN]
                                  dictate answers to valid requests; the first rule
                                  that applies wins. WHAT: STATUS:REASON, any word;
                                  STATUS, no body; STATUS:html, a page; reset:CODE,
                                  RST_STREAM; silence. token: those that begin so.
                                  connections: in the order they came, from 1.
                                  address: the simulator's that they came to.
                                  died, of a 410: none, before TIME or after TIME,
                                  from now; without it, now
        rules clear               end all of answer
        status                    the counts, as JSON on one line
        help                      the commands, on one line
        quit                      end in order
        TIME: 250ms, 1.5s, 20m, 2h.
        """

    /// The first words of all commands.
    package static let verbs = [
        "streams", "refuse", "goaway", "reset", "stall", "blackhole", "delay", "idle", "jwt",
        "key", "tokens", "token", "answer", "rules", "status", "help", "quit",
    ]

    /// Parses a line.
    ///
    /// - Throws: which word is wrong, why, and what would be right.
    package static func parse(_ line: String) throws(CommandError) -> Order {
        guard line.utf8.count <= lineBytesMax else {
            throw CommandError(
                word: 1, problem: "a line of \(line.utf8.count) bytes",
                remedy: "the most are \(lineBytesMax)")
        }
        var words = CommandWords(line)
        let order = try order(&words)
        try words.end()
        return order
    }

    private static func order(_ words: inout CommandWords) throws(CommandError) -> Order {
        let verb = try words.next("a command; help lists them")
        switch verb {
        case "status": return .status
        case "help": return .help
        case "quit": return .quit
        default: break
        }
        let command: SimulatorCommand
        switch verb {
        case "streams":
            command = .streamLimit(try words.number("a number of streams", in: 0...1_000_000))
        case "refuse":
            command = .refuseStreams(try words.number("a number of streams", in: 0...1_000_000))
        case "goaway": command = try goAway(&words)
        case "reset": command = try reset(&words)
        case "stall": command = .stall(try words.onOrOff())
        case "blackhole": command = .blackHole(try words.onOrOff())
        case "delay": command = .delay(try delay(&words))
        case "idle": command = .idleMax(try words.timeOrOff())
        case "jwt": command = try providerToken(&words)
        case "key":
            let keyID = try words.next("a key's identifier")
            command = .acceptKey(keyID, try words.onOrOff())
        case "tokens": command = try deviceTokens(&words)
        case "token": command = try assignment(&words)
        case "answer": command = .addRule(try rule(&words))
        case "rules":
            _ = try words.choice(["clear"])
            command = .rules([])
        default:
            throw words.error("'\(verb)' is no command", remedy: "help lists them")
        }
        return .perform(command)
    }

    private static func goAway(
        _ words: inout CommandWords
    ) throws(CommandError) -> SimulatorCommand {
        var reason: String?
        if let word = words.peek, word != "below" { reason = try words.reason() }
        var below = 0
        if words.skip("below") {
            below = try words.number("a number of streams", in: 0...1_000_000)
        }
        return .goAway(reason: reason, streamsBelow: below)
    }

    private static func reset(
        _ words: inout CommandWords
    ) throws(CommandError) -> SimulatorCommand {
        if try words.choice(["connections", "streams"]) == "connections" {
            return .resetConnections
        }
        guard words.peek != nil else { return .resetStreams(HTTP2ErrorCode.cancel) }
        return .resetStreams(try words.errorCode(try words.next("an HTTP/2 error code")))
    }

    private static func delay(_ words: inout CommandWords) throws(CommandError) -> AnswerDelay {
        if words.skip("uniform") { return .uniform(try words.timeRange()) }
        guard words.skip("exponential") else { return .fixed(try words.time()) }
        let mean = try words.time()
        let cap = words.skip("cap") ? try words.time() : mean * 10
        return .exponential(mean: mean, cap: cap)
    }

    private static func providerToken(
        _ words: inout CommandWords
    ) throws(CommandError) -> SimulatorCommand {
        switch try words.choice(["age", "update", "skew"]) {
        case "age": .providerTokenAgeMax(try words.seconds())
        case "update": .providerTokenUpdateMin(try words.seconds())
        default: .providerTokenClockSkewMax(try words.seconds())
        }
    }

    private static func deviceTokens(
        _ words: inout CommandWords
    ) throws(CommandError) -> SimulatorCommand {
        switch try words.choice(["gap", "topics", "environments", "bytes"]) {
        case "gap": .deviceTokenGapMin(try words.timeOrOff())
        case "topics": .judgeTokenTopic(try words.onOrOff())
        case "environments": .judgeTokenEnvironment(try words.onOrOff())
        default: .deviceTokenBytes(try words.range("lengths", in: 1...200))
        }
    }

    private static func assignment(
        _ words: inout CommandWords
    ) throws(CommandError) -> SimulatorCommand {
        let token = try words.hexadecimal()
        guard token.count % 2 == 0 else {
            throw words.error("'\(token)' is half a byte too long", remedy: "give whole bytes")
        }
        let topic = try words.next("a topic")
        let environment: PushEnvironment =
            words.peek == nil || words.skip("production")
            ? .production
            : try words.choice(["development"]) == "development" ? .development : .production
        return .assignToken(token, topic: topic, environment)
    }

    private static func rule(_ words: inout CommandWords) throws(CommandError) -> ScriptedRule {
        var answer = try words.scriptedAnswer()
        var rule = ScriptedRule(answer: answer)
        while words.peek != nil {
            switch try words.choice(["share", "token", "connections", "address", "for", "died"]) {
            case "share": rule.share = try words.share()
            case "token": rule.tokenPrefix = try words.hexadecimal()
            case "connections":
                rule.connections = try words.range("connections", in: 1...1_000_000)
            case "address": rule.address = try words.next("a numeric address")
            case "for": rule.lasting = try words.time()
            default:
                guard case .gone(let reason, _) = answer else {
                    throw words.error("only a 410 says when a token died", remedy: "leave it out")
                }
                answer = .gone(reason, try words.death())
                rule.answer = answer
            }
        }
        return rule
    }
}

/// What is wrong with a command, where, and what would be right.
package struct CommandError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The line of a script; nil for a single command.
    package var line: Int?
    /// The position of the word, counted from 1.
    package var word: Int
    package var problem: String
    package var remedy: String

    package init(line: Int? = nil, word: Int, problem: String, remedy: String) {
        self.line = line
        self.word = word
        self.problem = problem
        self.remedy = remedy
    }

    package var description: String {
        (line.map { "line \($0), " } ?? "") + "word \(word): \(problem.printable); \(remedy)"
    }
}
