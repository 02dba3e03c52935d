// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// Checks a run by its logs and topics. The only code it shares with the worker is the binding to
/// librdkafka, through which it reads topics.
///
/// The logs are streamed. Memory holds 24 bytes for each answer, 9 for each obligation that a push
/// ended, and the registrations.
package struct DeliveryCheck {
    private let settings: CheckSettings
    private var evidence = Evidence()
    private var notes: [String] = []
    private var reader: TopicReader?

    package init(_ settings: CheckSettings) { self.settings = settings }

    /// Checks the run.
    ///
    /// - Throws: an error for the first input that cannot be read; a run is never judged by a part
    ///   of its evidence.
    package mutating func run() throws(UnreadableInput) -> CheckReport {
        if let bootstrap = settings.bootstrap { reader = try TopicReader(bootstrap: bootstrap) }
        try readTables()
        try readAnswers()
        let span = try surveyEvents()
        try readWatermarks(of: span.topics)
        noteTruncation(span)

        let endedAt = settings.endedAt ?? max(span.lastAt, evidence.lastAnswerAt)
        var judge = PairJudge(evidence, settings: settings, endedAt: endedAt)
        _ = try forEachEvent { judge.judge($0) }
        var report = judge.finish()
        report.notes = notes
        return report
    }

    // MARK: Reading

    /// Reads the tables. Registrations come first, because they name the tokens.
    private mutating func readTables() throws(UnreadableInput) {
        var evidence = Evidence()
        try forEachRecord(of: settings.registrations, "registrations") {
            evidence.registrations.apply($0, tokens: &evidence.tokens)
        }
        if let source = settings.suppressions {
            var suppressions = SuppressionHistory()
            try forEachRecord(of: source, "suppressions") {
                suppressions.apply($0, tokens: evidence.tokens)
            }
            note(suppressions.unreadable, "suppressions cannot be read")
            evidence.suppressions = suppressions
        }
        if let source = settings.deadLetters {
            try forEachRecord(of: source, "dead letters") {
                evidence.letters.add($0, tokens: evidence.tokens)
            }
        }
        note(evidence.registrations.unreadable, "registrations cannot be read: they bind nobody")
        note(evidence.letters.unreadable, "dead letters cannot be read: they prove nothing")
        self.evidence = evidence
    }

    private mutating func forEachRecord(
        of source: CheckSettings.Source, _ what: String, _ body: (LoggedRecord) -> Void
    ) throws(UnreadableInput) {
        switch source {
        case .file(let path):
            try lines(of: path) { (line) throws(LineProblem) in body(try LoggedRecord(line)) }
        case .topic(let topic):
            guard let reader else { throw UnreadableInput(topic, "no Kafka to read it from") }
            try reader.forEachRecord(of: topic, body)
            let cut = try reader.lowWatermarks(of: topic).values.filter { $0 > 0 }.count
            note(cut, "partitions of \(topic) have lost their beginning: \(what) may be missing")
        }
    }

    private mutating func readAnswers() throws(UnreadableInput) {
        var evidence = Evidence()
        swap(&evidence, &self.evidence)
        defer { swap(&evidence, &self.evidence) }
        try lines(of: settings.answers) { (line) throws(LineProblem) in
            evidence.add(try LoggedAnswer(line))
        }
        evidence.indexAnswers()
        note(evidence.strayAnswers, "answers are to tokens that nobody registered")
    }

    private mutating func lines(
        of path: String, _ body: (Span<UInt8>) throws(LineProblem) -> Void
    ) throws(UnreadableInput) {
        if try LogFile(path: path).forEachLine(body) {
            notes.append("\(path) ends within a line, which is left out")
        }
    }

    private func forEachEvent(_ body: (ProducedEvent) -> Void) throws(UnreadableInput) -> Bool {
        try LogFile(path: settings.events).forEachLine { (line) throws(LineProblem) in
            body(try ProducedEvent(line))
        }
    }

    // MARK: Truncation

    /// The offsets that the log of events covers.
    private struct EventSpan {
        struct Offsets {
            var first: Int64
            var last: Int64
            var count: Int64
        }

        var lastAt = Int64.min
        var partitions: [Evidence.Partition: Offsets] = [:]
        var topics: Set<String> { Set(partitions.keys.map(\.topic)) }

        mutating func add(_ event: ProducedEvent) {
            lastAt = max(lastAt, event.t)
            let (at, offset) = (event.coordinates, event.coordinates.offset)
            let partition = Evidence.Partition(topic: at.topic, partition: at.partition)
            var offsets =
                partitions[partition] ?? Offsets(first: offset, last: offset, count: 0)
            offsets.first = min(offsets.first, offset)
            offsets.last = max(offsets.last, offset)
            offsets.count += 1
            partitions[partition] = offsets
        }
    }

    private mutating func surveyEvents() throws(UnreadableInput) -> EventSpan {
        var span = EventSpan()
        if try forEachEvent({ span.add($0) }) {
            notes.append("\(settings.events) ends within a line, which is left out")
        }
        return span
    }

    private mutating func readWatermarks(of topics: Set<String>) throws(UnreadableInput) {
        if let path = settings.lowWatermarks {
            var lows: [Evidence.Partition: Int64] = [:]
            try lines(of: path) { (line) throws(LineProblem) in
                let object = try JSONMembers(line)
                guard let partition = Int32(exactly: try object.required("partition") as Int64)
                else { throw .missing("partition") }
                let key = Evidence.Partition(
                    topic: try object.required("topic"), partition: partition)
                lows[key] = try object.required("low")
            }
            evidence.lowWatermarks = lows
        } else if let reader {
            for topic in topics {
                for (partition, low) in try reader.lowWatermarks(of: topic) {
                    let key = Evidence.Partition(topic: topic, partition: partition)
                    evidence.lowWatermarks[key] = low
                }
            }
        }
    }

    private mutating func noteTruncation(_ span: EventSpan) {
        for (partition, offsets) in span.partitions.sorted(by: { "\($0.key)" < "\($1.key)" }) {
            let name = "\(partition.topic)/\(partition.partition)"
            if let low = evidence.lowWatermarks[partition], low > offsets.first {
                notes.append(
                    "the broker has dropped what is below offset \(low) of \(name), where the log of "
                        + "events begins at \(offsets.first)")
            }
            let missing = offsets.last - offsets.first + 1 - offsets.count
            note(Int(missing), "offsets of \(name) are in no line of the log of events")
        }
    }

    private mutating func note(_ count: Int, _ text: String) {
        if count > 0 { notes.append("\(count) \(text)") }
    }
}
