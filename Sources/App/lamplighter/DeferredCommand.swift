// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import ArgumentParser
import Configuration
import Foundation
import PushModel
import RecordFormats
import Worker

struct DeferredCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "deferred",
        abstract: "Shows the pushes that wait in Kafka, sends them now, or drops them.",
        discussion: """
            A push that must wait longer than delivery.holdMax waits in the deferred topic. What \
            keeps them is in `lamplighter status`.
            """,
        subcommands: [List.self, Send.self, Drop.self])

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Prints the waiting pushes, the next one first, and their number.",
            discussion: "Of a token, the first 16 digits of its SHA-256 are shown.")

        @OptionGroup var options: ConfigurationOption
        @OptionGroup var filter: WaitingFilter

        @Option(help: "The most pushes to print; all of them are counted.")
        var limit: Int?

        @Flag(help: "One JSON object a line; the last one is the summary.")
        var json = false

        func validate() throws {
            if let limit, limit < 0 { throw ValidationError("--limit is 0 at least") }
        }

        func run() async throws {
            let configuration = try options.load()
            // A mistake in the filter is told at once: reading the topic may take long.
            let matches = try filter.matcher(WorkerPlan(configuration).routing)
            let waiting = try DeferredRows(configuration)
            let selected = waiting.pushes.filter(matches)
            for push in selected.prefix(limit ?? .max) {
                let listed = ListedPush(push, waiting.routing[push.route])
                print(json ? try JSONLine.of(listed) : listed.line)
            }
            let summary = WaitingSummary(selected, waiting)
            print(json ? try JSONLine.of(["summary": summary]) : summary.line)
        }
    }

    struct Send: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Lets waiting pushes be sent now.",
            discussion: """
                Writes each of them again with the present time. Their owners send them at once, as \
                far as their circuit breakers allow. A push that is being sent just then may be \
                sent twice.
                """)

        @OptionGroup var options: ConfigurationOption
        @OptionGroup var filter: WaitingFilter
        @OptionGroup var writing: WaitingWriting

        func run() async throws {
            try filter.requireSelection()
            let now = RecordWriter.now().wall
            try writing.run(try options.load(), filter, "sent", would: "send") {
                waiting, push, add in
                try waiting.forEachRecord(of: push) { push, content in
                    var content = content
                    content.notBefore = now
                    try add(push, DeferredEncoder.value(content), [])
                }
            }
        }
    }

    struct Drop: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Drops waiting pushes: they are never sent.",
            discussion: """
                Their owners count them with the outcome `dropped`. A push that is being sent just \
                then is sent; one that was deferred again meanwhile waits on.
                """)

        @OptionGroup var options: ConfigurationOption
        @OptionGroup var filter: WaitingFilter
        @OptionGroup var writing: WaitingWriting

        func run() async throws {
            try filter.requireSelection()
            try writing.run(try options.load(), filter, "dropped", would: "drop") {
                _, pushes, add in
                for push in pushes {
                    try add(
                        push, nil,
                        [
                            (DeferredPush.endedHeader, "\(push.writtenAt)"),
                            (DeferredPush.droppedHeader, "operator"),
                        ])
                }
            }
        }
    }
}

/// The options that select waiting pushes.
struct WaitingFilter: ParsableArguments {
    @Option(help: "Only pushes of this app.")
    var app: String?

    @Option(help: "production or development.")
    var environment: String?

    @Option(
        name: .customLong("class"),
        help: "Only pushes to tokens of this class, such as control or device.")
    var tokenClass: String?

    @Option(help: "Only pushes of this subject, as the oldest event that each answers for had it.")
    var subject: String?

    @Option(name: .customLong("token-id"), help: "The 16 digits of a token; may be repeated.")
    var tokenIDs: [String] = []

    @Flag(help: "Only pushes whose time has come, and which wait for something else.")
    var due = false

    @Flag(help: "Every waiting push.")
    var all = false

    func requireSelection() throws {
        let isNamed =
            app != nil || environment != nil || tokenClass != nil || subject != nil
            || !tokenIDs.isEmpty || due
        guard isNamed != all else {
            throw ValidationError(
                all
                    ? "--all is every push: leave out what selects some of them"
                    : "name what is meant: --app, --environment, --class, --subject, --token-id, "
                        + "--due, or --all")
        }
    }

    /// Makes the test that selects pushes. Throws for what can select none.
    func matcher(_ routing: RoutingTable) throws -> (DeferredRow) -> Bool {
        let environment = try environment.map(Arguments.environment)
        let wanted = try tokenClass.map(Arguments.tokenClass)
        let names = try Set(
            tokenIDs.map { text in
                guard let name = TokenName(written: text) else {
                    throw ValidationError(
                        "'\(TerminalText.visible(text))' is not the 16 digits of a token")
                }
                return name
            })
        let appID = try app.map { try Arguments.app($0, in: routing) }
        let subject = subject.map { Array($0.utf8) }
        return { push in
            let route = routing[push.route]
            if let appID, route.app != appID { return false }
            if let environment, route.environment != environment { return false }
            if let wanted, route.tokenClass != wanted { return false }
            if let subject, push.push.subject != subject { return false }
            if !names.isEmpty, !names.contains(push.token) { return false }
            return !due || push.push.notBefore <= RecordWriter.now().wall
        }
    }
}

/// What `send` and `drop` share: the records that they write.
struct WaitingWriting: ParsableArguments {
    @Flag(help: "Say what would be done, and write nothing.")
    var dryRun = false

    @OptionGroup var rate: RateOption

    /// Writes a record for one push: its value, or nil for a tombstone, and headers.
    typealias Writer = (DeferredRow, [UInt8]?, [(name: String, value: String)]) throws -> Void

    func run(
        _ configuration: Configuration, _ filter: WaitingFilter, _ done: String, would: String,
        _ write: (DeferredRows, [DeferredRow], Writer) throws -> Void
    ) throws {
        let matches = try filter.matcher(WorkerPlan(configuration).routing)
        let waiting = try DeferredRows(configuration)
        let selected = waiting.pushes.filter(matches)
        let count = selected.count.counted("push", plural: "pushes")
        guard !dryRun else { return print("would \(would) \(count)") }
        var stream = try RecordStream(
            configuration, topics: [configuration.kafka.topics.deferred],
            rate: try rate.recordsPerSecond())
        try write(waiting, selected) { push, value, headers in
            // To the partition of the record, where the key may not lead any more.
            try stream.write(
                OwnedRecord(
                    topic: 0, partition: push.partition, key: push.key, value: value,
                    headers: headers))
        }
        try stream.finish()
        print("\(done) \(count)")
    }
}

/// A waiting push as `--json` shows it.
private struct ListedPush: Encodable {
    let partition: Int32
    let offset: Int64
    let tokenID: String
    let environment: String
    let apnsTopic: String
    let `class`: String
    let pushType: String
    let hasPayload: Bool
    let notBefore: String
    let expiresAt: String
    let attempts: Int
    let subject: String?
    let subjectBase64: String?
    let source: String?

    init(_ waiting: DeferredRow, _ route: Route) {
        partition = waiting.partition
        offset = waiting.offset
        tokenID = "\(waiting.token)"
        environment = route.environment.name
        apnsTopic = route.apnsTopic
        self.class = route.tokenClass.name
        pushType = (waiting.payloadType ?? route.tokenClass.changeType)?.name ?? ""
        hasPayload = waiting.payloadType != nil
        notBefore = waiting.push.notBefore.rfc3339
        expiresAt = waiting.push.expiresAt.rfc3339
        attempts = waiting.push.attempts
        let bytes = waiting.push.subject
        let text = String(validating: bytes, as: UTF8.self)
        subject = bytes.isEmpty ? nil : text
        subjectBase64 = text == nil ? Data(bytes).base64EncodedString() : nil
        source = waiting.push.source.map { $0.visible }
    }

    var line: String {
        var words = [
            notBefore, tokenID, environment, apnsTopic, pushType, "attempts \(attempts)",
            "expires \(expiresAt)",
        ]
        if let subject { words.append("subject \"\(TerminalText.visible(subject))\"") }
        if let subjectBase64 { words.append("subject in base64 \(subjectBase64)") }
        if let source { words.append("event \(source)") }
        return words.joined(separator: "  ")
    }
}

private struct WaitingSummary: Encodable {
    let pushes: Int
    let due: Int
    let unreadable: Int

    init(_ selected: [DeferredRow], _ waiting: DeferredRows) {
        let now = RecordWriter.now().wall
        pushes = selected.count
        due = selected.count { $0.push.notBefore <= now }
        unreadable = waiting.unreadable
    }

    var line: String {
        let text = "\(pushes.counted("push", plural: "pushes")), \(due.withCommas) of them due"
        return unreadable == 0 ? text : text + "; \(unreadable.counted("record")) unreadable"
    }
}
