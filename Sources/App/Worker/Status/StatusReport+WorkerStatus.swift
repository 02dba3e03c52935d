// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Configuration
internal import Delivery
internal import FoundationEssentials
internal import KafkaLog
internal import Pipeline
internal import PushModel

extension StatusReport {
    init(_ status: WorkerStatus) {
        let diagnosis = Diagnosis(status)
        at = status.at
        worker = status.process
        phase = "\(status.phase)"
        summary = diagnosis.summary
        problems = diagnosis.problems
        index = status.index.told
        partitions = status.partitions
        unavailablePartitions = status.unavailablePartitions
        membership = diagnosis.membership
        rates = Rates(status)
        totals = Dictionary(uniqueKeysWithValues: status.counters.named.map { ($0.name, $0.value) })
        latency = Latency(status)
        waiting = status.load
        pools = status.pools.map(\.told)
        breakers = status.breakers.map {
            Breaker(
                name: $0.name, cause: $0.words, probeIn: $0.probeIn, remedy: $0.remedy.asSentence)
        }
        topics = status.troubledTopics.map {
            Topic(
                topic: $0.name, trouble: $0.trouble.asSentence, remedy: $0.remedy.asSentence)
        }
        unmatched = status.unmatched.filter { $0.count > 0 }
        passedOver = status.passedOver.filter { $0.count > 0 }
        setAside = status.setAside
        misplaced = status.misplaced.filter { $0.count > 0 }
        restrictions = status.restrictions.map { Restricted($0, $1, now: status.at) }.sorted {
            ($0.at, $0.what) < ($1.at, $1.what)
        }
        budgets = status.budgets
        subjectsOverBudget = status.subjectsOverBudget
        demand = status.demand
        canary = status.canary.map(Canary.init)
        shadow = status.shadow
        outcomes = status.outcomes
        pushes = status.pushes
    }

    /// The report as one JSON object with sorted members.
    package var json: String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        guard let data = try? encoder.encode(self) else {
            preconditionFailure("a status report cannot be written as JSON")
        }
        return String(decoding: data, as: UTF8.self)
    }

    /// Reads a report; nil if the text is none, or is of another version.
    package init?(json: [UInt8]) {
        guard let report = try? JSONDecoder().decode(StatusReport.self, from: Data(json)) else {
            return nil
        }
        self = report
    }
}

extension StatusReport.Restricted {
    fileprivate init(_ scope: Restriction.Scope, _ restriction: Restriction, now: WallTime) {
        self.init(
            what: "\(scope)", action: restriction.action.word,
            perSecond: restriction.action.perSecond,
            percent: restriction.action.rollout?.percent(at: now), by: restriction.by.printable,
            reason: restriction.reason?.printable,
            at: restriction.at, until: restriction.until,
            lift: restriction.isConfigured
                || restriction.action.rollout?.percent(at: now) ?? 100 < 100
                ? nil : scope.resumeCommand)
    }
}

extension StatusReport.Rates {
    fileprivate init(_ status: WorkerStatus) {
        let over = status.index.elapsed - status.earlier.elapsed
        let seconds = over.roundedSeconds
        let rate = { (count: Int) in
            seconds > 0 ? (Double(count) / seconds * 10).rounded() / 10 : 0
        }
        let (now, earlier) = (status.counters, status.earlier.counters)
        self.init(
            eventsPerSecond: rate(now.events - earlier.events),
            acceptedPerSecond: rate(now.accepted - earlier.accepted), over: over)
    }
}

extension StatusReport.Latency {
    fileprivate init(_ status: WorkerStatus) {
        let earlier = status.earlier
        eventToAccepted = status.eventToAccepted.map { type, times in
            let before = earlier.eventToAccepted.first { $0.type == type }?.times
            return StatusReport.Times(times.since(before ?? LatencyHistogram()), of: type)
        }
        roundTrip = StatusReport.Times(status.roundTrips.since(earlier.roundTrips))
    }
}

extension StatusReport.Times {
    fileprivate init(_ times: LatencyHistogram, of type: PushType? = nil) {
        self.init(
            type: type?.name, count: times.count, p50: times.quantile(0.5),
            p99: times.quantile(0.99))
    }
}

extension StatusReport.Canary {
    fileprivate init(_ canary: CanaryStatus) {
        self.init(
            every: canary.every, silence: canary.silence, latency: canary.latency,
            lastSuccessAt: canary.lastProof?.writtenAt, latest: canary.latest?.words.printable,
            written: canary.counts.written, cameThrough: canary.counts.cameThrough)
    }
}
