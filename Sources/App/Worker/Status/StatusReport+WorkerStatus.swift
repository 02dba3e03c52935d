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
        at = status.at.rfc3339
        worker = Worker(status.process)
        phase = "\(status.phase)"
        summary = diagnosis.summary
        problems = diagnosis.problems
        index = Index(status.index)
        partitions = status.partitions.map {
            Partition(topic: $0.topic, partition: $0.partition, lag: $0.lag)
        }
        unavailablePartitions = status.unavailablePartitions
        membership = diagnosis.membership
        rates = Rates(status)
        totals = Dictionary(uniqueKeysWithValues: status.counters.named.map { ($0.name, $0.value) })
        latency = Latency(status)
        waiting = Waiting(status)
        pools = status.pools.map {
            Pool(
                credential: $0.credential, environment: $0.environment.name,
                service: $0.isForBroadcasts ? "broadcasts" : nil,
                endpoint: $0.endpoint, state: $0.state.rawValue, connectError: $0.connectError,
                connections: $0.connections, streams: $0.streams, streamsMax: $0.streamsMax,
                providerTokenAgeSeconds: $0.providerTokenAge?.shown,
                silentSeconds: $0.silence?.shown, nextProbeSeconds: $0.probeIn?.shown)
        }
        breakers = status.breakers.map {
            Breaker(
                name: $0.name, cause: $0.words, nextProbeSeconds: $0.probeIn?.shown,
                remedy: $0.remedy.asSentence)
        }
        topics = status.troubledTopics.map {
            Topic(
                topic: $0.name, trouble: $0.trouble.asSentence, remedy: $0.remedy.asSentence)
        }
        unmatched = status.unmatched.compactMap(Unmatched.init)
        passedOver = status.passedOver.compactMap(Unmatched.init)
        setAside = status.setAside.map {
            SetAside(topic: $0.topic, unit: $0.unit, reason: $0.reason, count: $0.count)
        }
        misplaced = status.misplaced.filter { $0.records.count > 0 }.map {
            Misplaced(
                topic: $0.topic, count: $0.records.count, partition: $0.records.partition,
                offset: $0.records.offset, belongsIn: $0.records.home)
        }
        restrictions = status.restrictions.map { Restricted($0, $1, now: status.at) }.sorted {
            ($0.at, $0.what) < ($1.at, $1.what)
        }
        budgets = status.budgets.map {
            Budget(
                type: $0.type.name, perDay: $0.limit, tokensOver: $0.tokensOver,
                pushesOver: $0.pushesOver)
        }
        subjectsOverBudget = status.subjectsOverBudget.map {
            SubjectOverBudget(
                app: $0.app, subject: String(decoding: $0.subject, as: UTF8.self),
                pushes: $0.pushes)
        }
        demand = Demand(status.demand)
        canary = status.canary.map(Canary.init)
        shadow = status.shadow.map(Shadow.init)
        pushes = status.pushes.map {
            Push(
                app: $0.app, type: $0.type.name, outcome: $0.outcome, reason: $0.reason,
                count: $0.count)
        }
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
            at: restriction.at.rfc3339, until: restriction.until?.rfc3339,
            lift: restriction.isConfigured
                || restriction.action.rollout?.percent(at: now) ?? 100 < 100
                ? nil : scope.resumeCommand)
    }
}

extension StatusReport.Worker {
    fileprivate init(_ process: WorkerStatus.Process) {
        id = process.source.worker ?? ""
        group = process.source.group ?? ""
        version = process.build.version
        commit = process.build.commit
        startedAt = process.startedAt.rfc3339
        residentBytes = process.residentBytes
    }
}

extension StatusReport.Index {
    fileprivate init(_ index: WorkerStatus.Index) {
        recordsRead = index.recordsRead
        tokens = index.tokens
        tokensOf = index.tokensOf.map {
            StatusReport.TokenCount(
                app: $0.app, environment: $0.environment.name, class: $0.tokenClass.name,
                tokens: $0.tokens)
        }
        subjects = index.subjects
        subscriptions = index.subscriptions
        registrations = index.registrations
        bytes = index.bytes
        topics = index.tables.map {
            StatusReport.Table(
                topic: $0.topic, partitions: $0.partitions, unread: $0.unread,
                ageSeconds: $0.age.shown)
        }
        snapshotSeconds = index.snapshotAge?.shown
        share = index.share
        secondsLeft = index.timeLeft?.shown
    }
}

extension StatusReport.Rates {
    fileprivate init(_ status: WorkerStatus) {
        let over = (status.index.elapsed - status.earlier.elapsed).shown
        let rate = { (count: Int) in
            over > 0 ? (Double(count) / over * 10).rounded() / 10 : 0
        }
        let (now, earlier) = (status.counters, status.earlier.counters)
        eventsPerSecond = rate(now.events - earlier.events)
        acceptedPerSecond = rate(now.accepted - earlier.accepted)
        overSeconds = over
    }
}

extension StatusReport.Latency {
    fileprivate init(_ status: WorkerStatus) {
        let earlier = status.earlier
        eventToAccepted = status.eventToAccepted.map { latency in
            let before = earlier.eventToAccepted.first { $0.type == latency.type }
            let times = latency.times.since(before?.times ?? LatencyHistogram())
            return StatusReport.TypeLatency(
                type: latency.type.name, count: times.count,
                p50Seconds: times.quantile(0.5)?.shown, p99Seconds: times.quantile(0.99)?.shown)
        }
        let times = status.roundTrips.since(earlier.roundTrips)
        roundTrip = StatusReport.RoundTrip(
            count: times.count, p50Seconds: times.quantile(0.5)?.shown,
            p99Seconds: times.quantile(0.99)?.shown)
    }
}

extension StatusReport.Waiting {
    fileprivate init(_ status: WorkerStatus) {
        queued = status.load.queued
        inFlight = status.load.inFlight
        resting = status.load.resting
        deferred = status.load.deferred
        held = status.load.claims
        unacknowledged = status.load.unacknowledged
        payloadBytes = status.load.payloadBytes
        oldestWaitingSeconds = status.oldestWaiting?.shown
        oldestWaitingTopic = status.oldestWaitingEvent?.topic
        oldestWaitingSubject = status.oldestWaitingEvent.flatMap {
            $0.subject.isEmpty ? nil : String(decoding: $0.subject, as: UTF8.self)
        }
        oldestUncommittedSeconds = status.oldestUncommitted?.shown
    }
}

extension StatusReport.Demand {
    fileprivate init(_ demand: PushDemand) {
        overSeconds = demand.over.shown
        pushes = demand.pushes
        subjects = demand.subjects.map {
            Subject(
                app: $0.app, unit: $0.isKind ? "kind" : "subject",
                name: String(decoding: $0.subject, as: UTF8.self), topic: $0.topic,
                pushes: $0.pushes, audience: $0.audience)
        }
        topics = demand.topics.map { Part(name: $0.topic, pushes: $0.pushes) }
        apps = demand.apps.map { Part(name: $0.app, pushes: $0.pushes) }
    }
}

extension StatusReport.Canary {
    fileprivate init(_ canary: CanaryStatus) {
        self.init(
            everySeconds: canary.every.shown, silentSeconds: canary.silence?.shown,
            latencySeconds: canary.latency?.shown,
            lastSuccessAt: canary.lastProof?.writtenAt.rfc3339,
            latest: canary.latest?.words.printable, written: canary.counts.written,
            cameThrough: canary.counts.cameThrough)
    }
}

extension Duration {
    /// The duration in seconds, to the nearest ten microseconds.
    fileprivate var shown: Double { (self / .microseconds(10)).rounded() / 100_000 }
}

extension StatusReport.Unmatched {
    /// Nil where there is nothing to tell.
    fileprivate init?(_ subjects: WorkerStatus.UnmatchedSubjects) {
        guard subjects.count > 0 else { return nil }
        self.init(
            topic: subjects.topic, count: subjects.count,
            sample: subjects.sample.map { .init(subject: $0.subject, at: $0.at.rfc3339) })
    }
}
