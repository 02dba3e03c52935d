// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FoundationEssentials
internal import KafkaLog
internal import Pipeline
internal import PushModel

/// The report as lines for people. Whatever a record or an answer contains, a line stays a line, and
/// a number that is out of range is shown as the nearest.
extension StatusReport {
    /// All of it, for one worker.
    package var lines: [String] {
        var rows = shadow.map { [("shadow", $0.text)] } ?? []
        rows += [
            ("partitions", partitionsText), ("throughput", throughputText),
            ("latency", latencyText), ("waiting", waitingText), ("offsets", offsetsText),
            ("index", indexText),
        ]
        rows += tokenRows
        rows += canary.map { [("canary", $0.text)] } ?? []
        rows += (restrictions ?? []).map { ("restricted", $0.text) }
        rows += pools.map { ("pool", $0.text) }
        rows += breakers.flatMap(\.rows)
        rows += topics.flatMap { [("topic", "\($0.topic): \($0.trouble)"), ("", $0.remedy)] }
        rows += outcomes.map { [("outcomes", $0.text)] } ?? []
        rows += unmatched.map { ("unmatched", $0.text) }
        rows += (passedOver ?? []).map { ("passed over", $0.text) }
        rows += setAside.map { ("set aside", $0.text) }
        rows += (misplaced ?? []).map { ("misplaced", $0.row) }
        rows += budgetRows + (demand?.rows ?? [])
        rows.append(("totals", totalsText))
        // A single problem is in the summary.
        let findings = (problems.count > 1 ? problems : []).flatMap { problem in
            [(problem.severity.rawValue, problem.summary), ("", problem.remedy)]
        }
        return
            ([title, summaryLine, ""] + rows.map(Self.line)
            + (findings.isEmpty ? [] : [""]) + findings.map(Self.line)).map(\.printable)
    }

    /// Those of which there are most.
    private var tokenRows: [(String, String)] {
        (index.tokensOf ?? []).sorted { $0.tokens > $1.tokens }.prefix(8).map {
            ("tokens", "\($0.app) in \($0.environment), \($0.class): \($0.tokens.withCommas)")
        }
    }

    private var budgetRows: [(String, String)] {
        (budgets ?? []).map { ("budget", $0.text) }
            + (subjectsOverBudget ?? []).prefix(3).map { ("over budget", $0.text) }
    }

    private var title: String {
        "worker \(worker.id), group \(worker.group), \(worker.version) (\(worker.commit)), "
            + "up \(max(.zero, at - worker.startedAt).rounded), \(Self.size(worker.residentBytes))"
    }

    private var summaryLine: String { "\(phase): \(summary)" }

    private var partitionsText: String {
        let topics = Dictionary(grouping: partitions, by: \.topic).sorted { $0.key < $1.key }
        let counts = topics.map { "\($0.key) \($0.value.count)" }.joined(separator: ", ")
        let missing = unavailablePartitions > 0 ? ", \(unavailablePartitions) not readable" : ""
        return "\(partitions.count)\(counts.isEmpty ? "" : " (\(counts))")\(missing), "
            + "lag \(lagText)"
    }

    fileprivate var lagText: String {
        let known = partitions.compactMap(\.lag)
        return known.isEmpty ? "–" : Int(known.reduce(Int64(0)) { $0.adding($1) }).withCommas
    }

    private var throughputText: String {
        "\(Self.rate(rates.eventsPerSecond)) events/s, \(Self.rate(rates.acceptedPerSecond)) "
            + "accepted/s, over \(rates.over.rounded)"
    }

    private var latencyText: String {
        let types = latency.eventToAccepted.filter { $0.count > 0 }.map {
            "\($0.type ?? "") \($0.text)"
        }
        return (types + ["round trip \(latency.roundTrip.text)"]).joined(separator: ", ")
    }

    private var waitingText: String {
        "\(waiting.queued.withCommas) queued, \(waiting.inFlight.withCommas) in flight, "
            + "\(waiting.resting.withCommas) resting, \(waiting.deferred.withCommas) deferred"
            + (waiting.oldestWaiting.map { ", the oldest for \(Self.text($0))" } ?? "")
    }

    private var offsetsText: String {
        "\(waiting.claims.counted("event")) held, "
            + "\(waiting.unacknowledged.counted("record")) unacknowledged"
            + (waiting.oldestUncommitted.map {
                "; the oldest uncommitted event was read \(Self.text($0)) ago"
            } ?? "")
    }

    private var indexText: String {
        let age = index.tables.map(\.age).max()
        let behind = age.map { ", at most \(Self.text($0)) old" } ?? ""
        return "\(index.tokens.counted("token")), \(index.subscriptions.counted("subscription")), "
            + "\(Self.size(index.bytes))\(behind)"
    }

    private var totalsText: String {
        let names = [
            ("events", "events"), ("accepted", "accepted"), ("rejected", "rejected"),
            ("expired", "expired"), ("suppressed", "suppressed"),
            ("deadLettersWritten", "dead letters"),
        ]
        return names.map { "\((totals[$0.0] ?? 0).withCommas) \($0.1)" }.joined(separator: ", ")
    }

    // MARK: Several workers

    /// A table of several workers, and then what each says.
    package static func table(_ reports: [StatusReport]) -> [String] {
        let head = [
            "worker", "phase", "partitions", "lag", "events/s", "accepted/s", "p99", "waiting",
            "deferred",
        ]
        let rows = [head] + reports.map(\.row)
        let widths = head.indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
        let table = rows.map { row in
            zip(row, widths).map { $0.padding(to: $1) }.joined(separator: "  ")
        }
        let said = reports.map { "\($0.worker.id): \($0.summary)" }
        return (table + [""] + said + nobodyReads(reports)).map(\.printable)
    }

    /// Each worker alone is well where others have all partitions; if these are all there are, none is.
    private static func nobodyReads(_ reports: [StatusReport]) -> [String] {
        guard reports.count > 1, Set(reports.map(\.worker.group)).count == 1,
            reports.allSatisfy({ $0.membership == .spare })
        else { return [] }
        return [
            "None of these workers has a partition: if there are no more, another program has joined "
                + "their group; see kafka-consumer-groups.sh --describe --members."
        ]
    }

    private var row: [String] {
        [
            worker.id, phase, "\(partitions.count)", lagText, Self.rate(rates.eventsPerSecond),
            Self.rate(rates.acceptedPerSecond),
            latency.eventToAccepted.compactMap(\.p99).max().map(Self.text) ?? "–",
            waiting.queued.adding(waiting.inFlight).adding(waiting.resting).withCommas,
            waiting.deferred.withCommas,
        ]
    }

    // MARK: Words

    /// A report comes from whoever answers: a number that no worker has must not trap. This one fits
    /// an `Int`.
    private static let numberMax = 1e15

    private static func line(_ row: (name: String, text: String)) -> String {
        "\(row.name.padding(to: 11))  \(row.text)"
    }

    private static func rate(_ rate: Double) -> String {
        rate < 10 ? "\(rate)" : Int(min(rate, numberMax).rounded()).withCommas
    }

    fileprivate static func text(_ duration: Duration) -> String {
        let seconds = duration.roundedSeconds
        return switch seconds {
        case ..<0.01: "\((seconds * 100_000).rounded() / 100) ms"
        case ..<1: "\(Int((seconds * 1000).rounded())) ms"
        case ..<10: "\((seconds * 10).rounded() / 10) s"
        default: duration.rounded
        }
    }

    private static func size(_ bytes: Int) -> String {
        bytes < 10 << 20
            ? "\((bytes >> 10).withCommas) KiB" : "\((bytes >> 20).withCommas) MiB"
    }
}

extension StatusReport.Times {
    fileprivate var text: String {
        guard let p50, let p99 else { return "–" }
        return "p50 \(StatusReport.text(p50)) p99 \(StatusReport.text(p99))"
    }
}

extension WorkerStatus.Pool {
    fileprivate var text: String {
        let token = providerTokenAge.map { ", provider token \(StatusReport.text($0)) old" }
        let silence = silence.map { ", no answer for \(StatusReport.text($0))" }
        // Where all is well the address is of no interest.
        let error = connectError.map { ", \(endpoint): \($0)" }
        let probe = probeIn.map { ", next probe in \(StatusReport.text($0))" } ?? ""
        let service = service.map { " for \($0)" } ?? ""
        return "\(credential) in \(environment)\(service): \(toldState)\(probe), "
            + "\(connections.counted("connection")), "
            + "\(streams.withCommas) of \(streamsMax.withCommas) streams\(token ?? "")"
            + (silence ?? "") + (error ?? "")
    }
}

extension StatusReport.Breaker {
    fileprivate var rows: [(String, String)] {
        let probe = probeIn.map { "next probe in \(StatusReport.text($0))" }
        return [("breaker", "\(name): \(cause), \(probe ?? "a probe is out")"), ("", remedy)]
    }
}

extension WorkerStatus.SetAsideCount {
    fileprivate var text: String { "\(topic): \(count.withCommas) \(unit), \(reason)" }
}

extension MisplacedRecords {
    fileprivate var row: String {
        "\(topic): \(count.counted("record")) in another partition than the key's, such as "
            + "\(partition)/\(offset), which belongs in \(belongsIn); see docs/kafka.md"
    }
}

extension BudgetUse {
    fileprivate var text: String {
        guard tokensOver > 0 else { return "\(type): no token was sent more than \(perDay) today" }
        return "\(type): \(tokensOver.counted("token")) sent more than \(perDay) today, "
            + "\(pushesOver.counted("push", plural: "pushes")) above it"
    }
}

extension SubjectOverBudget {
    fileprivate var text: String {
        "\(subject) of \(app): \(pushes.counted("push", plural: "pushes"))"
    }
}

extension StatusReport.Canary {
    fileprivate var text: String {
        let period = "one every \(StatusReport.text(every))"
        guard let silence else {
            return "\(period), none while this worker has no partition of its topic"
        }
        let proof =
            latency.map {
                "the newest that came through was written \(StatusReport.text(silence)) ago "
                    + "and took \(Int(($0 / .milliseconds(1)).rounded())) ms"
            } ?? "none has come through in \(StatusReport.text(silence))"
        return "\(period), \(proof)" + (latest.map { "; the latest: \($0)" } ?? "")
    }
}

extension PushDemand {
    /// So many subjects, topics and apps are shown.
    private static let shown = 3

    /// Nothing where nobody has asked for a push.
    fileprivate var rows: [(String, String)] {
        guard pushes > 0 else { return [] }
        let head =
            "about \(pushes.counted("push", plural: "pushes")) asked for in "
            + "\(StatusReport.text(over)): \(text(of: topics)); \(text(of: apps))"
        let most = subjects.prefix(Self.shown).map { subject in
            "\(subject.unit) \(subject.name) of \(subject.app): \(share(subject.pushes)), "
                + "\(subject.audience.withCommas) for each event, "
                + "from \(subject.topic)"
        }
        return [("demand", head)] + most.map { ("", $0) }
    }

    private func text(of parts: [Part]) -> String {
        parts.prefix(Self.shown).map { "\($0.name) \(share($0.pushes))" }.joined(separator: ", ")
    }

    private func share(_ part: Int) -> String {
        "\(Int((min(1, max(0, Double(part) / Double(pushes))) * 100).rounded())) %"
    }
}

extension WorkerStatus.UnmatchedSubjects {
    fileprivate var text: String {
        let subjects = sample.suffix(3).reversed().map(\.subject)
        guard !subjects.isEmpty else { return "\(topic): \(count.counted("event"))" }
        // One remark is enough, and stands beside the subject that it is about.
        let odd = subjects.firstIndex { !$0.subjectRemark.isEmpty }
        let shown = subjects.indices.map { index in
            subjects[index] + (index == odd ? subjects[index].subjectRemark : "")
        }
        return "\(topic): \(count.counted("event")), such as " + shown.joined(separator: ", ")
    }
}

extension String {
    fileprivate func padding(to width: Int) -> String {
        self + String(repeating: " ", count: max(0, width - count))
    }
}

extension StatusReport.Restricted {
    fileprivate var text: String {
        let rate = perSecond.map { " to \($0)/s" } ?? percent.map { " to \($0) %" } ?? ""
        guard by != ConfiguredRestriction.by else {
            return "\(what): \(action)\(rate), by \(by) (the configuration) since \(at.rfc3339)"
        }
        let end = until.map { ", until \($0.rfc3339)" } ?? ""
        let why = reason.map { ": \($0)" } ?? ""
        return "\(what): \(action)\(rate), by \(by) at \(at.rfc3339)\(end)\(why)"
    }
}
