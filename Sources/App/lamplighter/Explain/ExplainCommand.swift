// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import ArgumentParser
import Configuration
import Entrypoint
import Foundation
import KafkaLog
import PushModel
import Worker

struct ExplainCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "explain",
        abstract: "Says why a phone gets nothing: its tokens, their state, and their last pushes.",
        discussion: """
            Asks running workers about a subject, an installation or a token. Each worker knows all \
            tokens; what waits and what became of pushes is each worker's own, so name them all. \
            With --config the registrations in Kafka are read too: they have the names of \
            installations and handlers, and targets without a token.

            --event asks whom a record would reach, and why not the others; --key alone stands for a \
            record without a value. Nothing is written, counted or sent.

            Without a URL it asks the worker on this machine: at port 9465, or with --config at its \
            admin.port. Exit codes: 0 every worker has answered; 1 some have not, or Kafka has not; \
            64 the question is wrong; 69 none can be reached; 78 the token is missing or wrong, or admin.port not set.
            """)

    @Argument(help: "Where workers answer operators, such as http://worker-1:9465.")
    var urls: [String] = []

    @Option(help: "The tokens that show this subject.")
    var subject: String?

    @Option(help: "The tokens of this installation.")
    var installation: String?

    @Option(
        name: .customLong("token-id"),
        help: "The token with this ID: the first 16 digits of its SHA-256, as in logs.")
    var tokenID: String?

    @Option(help: "Only of this app.")
    var app: String?

    @Option(help: "Of an installation only in production or development.")
    var environment: String?

    @Option(help: "Of an installation only this handler.")
    var handler: String?

    @Option(help: "The file with a record's value, or - for standard input.")
    var event: String?

    @Option(help: "The record's key.")
    var key: String?

    @Option(help: "The record's topic, one of kafka.events.")
    var topic: String?

    @Option(name: .customLong("header"), help: "A header of the record, name=value; repeatable.")
    var headers: [String] = []

    @Option(
        name: .customLong("config"),
        help: "The configuration of a worker: its admin.port, its token, and its Kafka.")
    var file: String?

    @Option(name: .customLong("token-file"), help: "The file of the token, as in admin.tokenFile.")
    var tokenFile: String?

    @Flag(help: "Print JSON (docs/commands.md).")
    var json = false

    private var isOfRecord: Bool { event != nil || key != nil }

    /// To be called by `run` and not named `validate`: that is called before an unknown option is
    /// reported, so that a misspelt one would be told as one that is missing.
    private func checkArguments() throws {
        let asked = [subject, installation, tokenID].compactMap { $0 }.count
        guard asked + (isOfRecord ? 1 : 0) == 1 else {
            throw ValidationError(
                "ask about one of --subject, --installation, --token-id and --event (or --key)")
        }
        // An empty name is usually an unset shell variable.
        for name in [subject, installation] where name == "" {
            throw ValidationError("the name is empty")
        }
        if let tokenID, TokenName(written: tokenID) == nil {
            throw ValidationError("--token-id has 16 hexadecimal digits")
        }
        if let environment { _ = try Arguments.environment(environment) }
        guard installation != nil || (environment == nil && handler == nil) else {
            throw ValidationError("--environment and --handler go with --installation")
        }
        guard tokenID == nil && !isOfRecord || app == nil else {
            throw ValidationError("--app goes with --subject and --installation")
        }
        guard isOfRecord || (topic == nil && headers.isEmpty) else {
            throw ValidationError("--topic and --header go with --event or --key")
        }
        for header in headers where !header.contains("=") {
            throw ValidationError("--header is name=value")
        }
        try refuseReplaced([subject], of: "--subject")
        try refuseReplaced([key], of: "--key")
        try refuseReplaced(headers, of: "--header")
    }

    /// Swift replaces bytes of an argument that are not UTF-8, and the answer would be about another
    /// record.
    private func refuseReplaced(_ values: [String?], of option: String) throws {
        for value in values where value?.unicodeScalars.contains("\u{FFFD}") ?? false {
            throw ValidationError(
                "\(option) is not UTF-8, or has the character U+FFFD: explain cannot ask about it")
        }
    }

    func run() async throws {
        try checkArguments()
        let configuration = try file.map {
            try Configuration.load(file: $0, environment: ProcessInfo.processInfo.environment)
        }
        if let app, let configuration, !configuration.apps.contains(app) {
            return try explainStranger(app, configuration)
        }
        let inquiry = try WorkerInquiry(urls, tokenFile: tokenFile, configuration)
        if isOfRecord { return try await explainRecord(inquiry) }
        let answers = await inquiry.ask(path: "/explain", query: query, as: TokenReply.self)
        var registrations: [FoundRegistration]?
        var unread: String?
        // The workers' answers are wanted most of all while Kafka is away.
        do {
            registrations = try configuration.map(search)
        } catch {
            unread = ExplainText.unread(because: Failure(error).message)
        }
        let replies = answers.compactMap { answer in answer.value.map { (answer.url, $0) } }
        if json {
            print(TerminalText.visible(json: ExplainJSON.text(Output(replies, registrations))))
        } else if !replies.isEmpty {
            show(
                ExplainText.lines(
                    asking: wanted, answers: replies, registrations: registrations,
                    wasKafkaAsked: configuration != nil))
        }
        if let unread { StandardError.write(unread) }
        try WorkerInquiry.report(answers)
        if unread != nil { throw ExitCode.failure }
    }

    private struct Output: Encodable {
        struct Worker: Encodable {
            var url: String
            var answer: TokenReply
        }

        var workers: [Worker]
        var registrations: [FoundRegistration]?

        init(_ replies: [(String, TokenReply)], _ registrations: [FoundRegistration]?) {
            workers = replies.map { Worker(url: $0, answer: $1) }
            self.registrations = registrations
        }
    }

    private func show(_ lines: [String]) {
        for line in lines { print(TerminalText.visible(sentence: line)) }
    }

    // MARK: Tokens

    private var wanted: RegistrationSearch.Wanted {
        if let subject { return .subject(subject) }
        if let installation { return .installation(installation) }
        return .token((tokenID ?? "").lowercased())
    }

    private var query: [(name: String, value: String)] {
        [
            ("subject", subject), ("installation", installation), ("tokenID", tokenID),
            ("app", app), ("environment", environment), ("handler", handler),
        ].compactMap { name, value in value.map { (name, $0) } }
    }

    /// Looks through the registrations in Kafka.
    private func search(_ configuration: Configuration) throws -> [FoundRegistration] {
        var search = RegistrationSearch(
            configuration, wanted, app: app, environment: try environment.map(Arguments.environment)
        )
        try TopicSweep(configuration, topic: configuration.kafka.topics.registrations).run {
            search.record(
                key: $0.key, value: $0.value,
                timestamp: WallTime(milliseconds: $0.timestampMilliseconds))
            return true
        }
        return search.found.filter { handler == nil || $0.handler == handler }
    }

    /// A worker with this configuration sets aside what the app registers, so that only Kafka can
    /// have something of it.
    private func explainStranger(_ app: String, _ configuration: Configuration) throws {
        let found = try search(configuration)
        guard !found.isEmpty else {
            throw ValidationError(
                "\(configuration.strangerText(app)); and Kafka has no registration of that app that "
                    + "matches: is it misspelt?")
        }
        guard !json else {
            return print(TerminalText.visible(json: ExplainJSON.text(Output([], found))))
        }
        show(
            ExplainText.lines(ofStranger: app, configuration, asking: wanted, registrations: found))
    }

    // MARK: Records

    /// Any worker can answer, so one answer is shown; that others have given none is told.
    private func explainRecord(_ inquiry: WorkerInquiry) async throws {
        var question = EventQuestion()
        question.topic = topic
        question.key = key.map { Array($0.utf8) }
        question.value = try event.map { try Arguments.contents(of: $0, option: "--event") }
        question.headers = headers.map { header in
            let name = header.prefix { $0 != "=" }
            return (String(name), Array(header.dropFirst(name.count + 1).utf8))
        }
        let answers = await inquiry.ask(
            path: "/explain", body: question.body, as: EventReply.self)
        if let reply = answers.compactMap(\.value).first {
            if json {
                print(TerminalText.visible(json: ExplainJSON.text(reply)))
            } else {
                show(EventText.lines(reply))
            }
        }
        try WorkerInquiry.report(answers)
    }
}
