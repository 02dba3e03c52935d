// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Configuration
internal import KafkaLog
internal import Pipeline
internal import PushModel
internal import SchemaRegistry
internal import Telemetry

extension WorkerMetrics {
    // MARK: The process

    static let process: [Metric] = [
        metric(
            "lamplighter_build_info", .info, labels: ["version", "commit"],
            "What this worker was built from."
        ) { status in
            let process = status.process
            let labels = [(name: "version", value: process.version), ("commit", process.commit)]
            return [MetricFamily.Series(.integer(1), labels)]
        },
        metric(
            "lamplighter_phase", .gauge, labels: ["phase"],
            "1 for the phase that the worker is in: replaying, running, draining or stopped."
        ) { status in
            labelled(
                "phase",
                WorkerControl.Phase.allCases.map { ("\($0)", status.phase == $0 ? 1 : 0) })
        },
        metric(
            "process_cpu_seconds_total", .counter, labels: [],
            "CPU time of all threads, in user mode and in the kernel."
        ) { [MetricFamily.Series(.number($0.process.cpuTime.seconds))] },
        metric("process_open_fds", .gauge, labels: [], "Open file descriptors.") { status in
            status.process.fileDescriptors.map { [.init(.integer($0))] } ?? []
        },
        metric(
            "process_max_fds", .gauge, labels: [],
            "How many file descriptors may be open (the soft limit of RLIMIT_NOFILE)."
        ) { status in status.process.fileDescriptorsMax.map { [.init(.integer($0))] } ?? [] },
        gauge(
            "process_start_time_seconds", "When the worker was started, in Unix time."
        ) { status in
            Int(status.process.startedAt.milliseconds / 1000)
        },
        gauge(
            "process_resident_memory_bytes", "Memory of the process that is in RAM."
        ) { $0.process.residentBytes },
        metric(
            "lamplighter_memory_bytes", .gauge, labels: ["part"],
            "Memory of each part of the worker; of some, its peak, and of traces an estimate. What "
                + "the Kafka clients have fetched ahead is not among them."
        ) { status in labelled("part", status.memory) },
    ]

    // MARK: The index

    static let index: [Metric] = [
        gauge("lamplighter_index_tokens", "Push tokens that some registration holds.") {
            $0.index.tokens
        },
        metric(
            "lamplighter_index_app_tokens", .gauge, labels: ["app", "environment", "class"],
            "The same by app, environment and class of token; no series where there is none."
        ) { status in
            (status.index.tokensOf ?? []).map {
                MetricFamily.Series(
                    .integer($0.tokens),
                    [
                        (name: "app", value: $0.app), ("environment", $0.environment),
                        ("class", $0.class),
                    ])
            }
        },
        gauge("lamplighter_index_subjects", "Subjects that some token shows.") {
            $0.index.subjects
        },
        gauge("lamplighter_index_subscriptions", "Pairs of a token and a subject that it shows.") {
            $0.index.subscriptions
        },
        gauge("lamplighter_index_registrations", "Registrations in force, one for each record key.")
        {
            $0.index.registrations
        },
        gauge("lamplighter_index_suppressions", "Suppressions in force.") {
            $0.index.suppressions
        },
        metric(
            "lamplighter_replay_records", .gauge, labels: ["state"],
            "While the phase is replaying, the records of registrations, suppressions and "
                + "restrictions that were read, and those that are left to be read."
        ) { status in
            guard status.phase == .replaying else { return [] }
            let read = Int(clamping: status.index.recordsRead)
            return labelled("state", [("read", read), ("left", status.index.recordsLeft)])
        },
        metric(
            "lamplighter_replay_left_seconds", .gauge, labels: [],
            "While the phase is replaying, how long reading the rest takes at the average speed so "
                + "far, once that is known."
        ) { status in
            guard status.phase == .replaying, let left = status.index.timeLeft else { return [] }
            return [MetricFamily.Series(.number(left.seconds))]
        },
        metric(
            "lamplighter_index_snapshot_age_seconds", .gauge, labels: [],
            "How old the snapshot was that the index was begun with; none where everything was read "
                + "from Kafka."
        ) { status in
            status.index.snapshotAge.map { [MetricFamily.Series(.number($0.seconds))] } ?? []
        },
        metric(
            "lamplighter_index_age_seconds", .gauge, labels: ["topic"],
            "All that was written to the topic longer ago than this is in the index."
        ) { status in
            status.index.tables.map { table in
                MetricFamily.Series(
                    .number(table.age.seconds), [(name: "topic", value: table.topic)])
            }
        },
        counter(
            "lamplighter_registrations_read_total",
            "Records of registrations that were read, replays included."
        ) { $0.counters.registrationsRead },
        metric(
            "lamplighter_records_set_aside_total", .counter, labels: ["topic", "reason"],
            "Records of registrations, suppressions, restrictions and deferred pushes that could not "
                + "be used, such as of an app that no credential serves."
        ) { setAside($0, "records") },
        metric(
            "lamplighter_registration_rows_set_aside_total", .counter, labels: ["topic", "reason"],
            "Rows and targets that could not be used of registrations whose others are in use."
        ) { setAside($0, "rows") },
        metric(
            "lamplighter_records_misplaced_total", .counter, labels: ["topic"],
            "Records of registrations, suppressions and restrictions that were read in another "
                + "partition than murmur2 gives their key, replays included: their producer has "
                + "another partitioner, and older ones may win after a restart."
        ) { status in labelled("topic", status.misplaced.map { ($0.topic, $0.count) }) },
        counter(
            "lamplighter_registration_rows_without_kind_total",
            "Rows that were taken without their kind, since their app has used up its kinds."
        ) { $0.counters.registrationRowsWithoutKind },
        counter(
            "lamplighter_suppressions_read_total",
            "Records of suppressions that were read, replays included."
        ) { $0.counters.suppressionsRead },
    ]

    private static func setAside(
        _ status: WorkerStatus, _ unit: String
    ) -> [MetricFamily.Series] {
        status.setAside.filter { $0.unit == unit }.map { counted in
            let labels = [(name: "topic", value: counted.topic), ("reason", counted.reason)]
            return MetricFamily.Series(.integer(counted.count), labels)
        }
    }

    // MARK: Kafka

    static let log: [Metric] = [
        metric(
            "lamplighter_topic_unread_records", .gauge, labels: ["topic"],
            "Records of a topic that this worker has not read yet: of its partitions, or of all "
                + "where it reads all."
        ) { status in labelled("topic", status.unread) },
        metric(
            "lamplighter_topic_waits_total", .counter, labels: ["topic"],
            "How often a topic of events was left in Kafka for a while, since room was short and it had "
                + "taken most of it."
        ) { status in labelled("topic", status.topicTurns.map { ($0.topic, $0.waits) }) },
        metric(
            "lamplighter_topic_waiting", .gauge, labels: ["topic"],
            "1 for a topic of events that is left in Kafka for a while, so that it delays no other."
        ) { status in
            labelled("topic", status.topicTurns.map { ($0.topic, $0.isWaiting ? 1 : 0) })
        },
        counter(
            "lamplighter_records_redelivered_total",
            "Records of events that this worker has read more than once, after a rebalance; their "
                + "pushes may have been sent twice."
        ) { $0.redelivered },
        metric(
            "lamplighter_partition_lag_records", .gauge, labels: ["topic", "partition"],
            "Records of a partition of events that are not committed yet."
        ) { status in
            status.partitions.compactMap { partition in
                guard let lag = partition.lag else { return nil }
                let labels = [
                    (name: "topic", value: partition.topic),
                    ("partition", "\(partition.partition)"),
                ]
                return MetricFamily.Series(.integer(Int(lag)), labels)
            }
        },
        metric(
            "lamplighter_partitions_assigned", .gauge, labels: ["topic"],
            "Partitions that the group has given to this worker."
        ) { status in
            let counts = Dictionary(grouping: status.partitions, by: \.topic)
            return labelled(
                "topic", status.consumedTopics.map { ($0, counts[$0]?.count ?? 0) })
        },
        gauge(
            "lamplighter_partitions_unavailable",
            "Partitions of this worker that cannot be read at the moment."
        ) { $0.unavailablePartitions },
        metric(
            "lamplighter_partitions_held", .gauge, labels: ["topic"],
            "Partitions of this worker that wait until the schema registry gives the schema of their "
                + "next record."
        ) { status in
            guard status.schemas != nil else { return [] }
            let counts = Dictionary(grouping: status.held, by: \.topic)
            return labelled(
                "topic", status.consumedTopics.map { ($0, counts[$0]?.count ?? 0) })
        },
        metric(
            "lamplighter_restrictions", .gauge, labels: ["action", "origin"],
            "Restrictions in force, by what they do (`pause`, `drop` or `limit`) and by where they "
                + "come from: a `command`, or the `configuration`. Workers with the same "
                + "configuration say the same."
        ) { status in
            ["pause", "drop", "limit"].flatMap { action in
                ["command", "configuration"].map { origin in
                    let count = status.restrictions.values.count {
                        $0.action.word == action
                            && $0.isConfigured == (origin == "configuration")
                    }
                    let labels = [(name: "action", value: action), ("origin", origin)]
                    return MetricFamily.Series(.integer(count), labels)
                }
            }
        },
        metric(
            "lamplighter_rollout_percent", .gauge, labels: ["app"],
            "To so many of a hundred tokens of an app this worker sends at the moment, while another "
                + "sender serves the others (`lamplighter rollout`); no series where there is no rollout. "
                + "All workers say the same."
        ) { status in
            status.restrictions.compactMap { scope, restriction in
                guard case .rollout(let app) = scope, let rollout = restriction.action.rollout
                else { return nil }
                return MetricFamily.Series(
                    .integer(rollout.percent(at: status.at)), [(name: "app", value: app)])
            }
        },
        metric(
            "lamplighter_schema_requests_total", .counter, labels: ["outcome"],
            "What came of asking the schema registry for a schema: `fetched`, `unknown` to it, "
                + "`unusable`, `failed` by another answer or none in time, or the registry was "
                + "`unreachable`."
        ) { status in
            guard let counts = status.schemas?.counts else { return [] }
            return labelled(
                "outcome",
                [
                    ("fetched", counts.fetched), ("unknown", counts.unknown),
                    ("unusable", counts.unusable), ("failed", counts.failed),
                    ("unreachable", counts.unreachable),
                ])
        },
        metric(
            "lamplighter_topic_blocked", .gauge, labels: ["topic"],
            "1 while Kafka takes none of the records that this worker writes to the topic."
        ) { status in
            let blocked = Set(status.troubledTopics.map(\.name))
            return labelled(
                "topic", status.producedTopics.map { ($0, blocked.contains($0) ? 1 : 0) })
        },
        counter(
            "lamplighter_records_refused_total",
            "Records of the worker's own that Kafka refused; they are produced again."
        ) { $0.counters.recordsRefused },
        counter(
            "lamplighter_records_abandoned_total",
            "Records of the worker's own that were given up because Kafka never takes them."
        ) { $0.counters.recordsAbandoned },
        metric(
            "lamplighter_dead_letters_written_total", .counter, labels: ["reason"],
            "Dead letters that were written; `other` stands for reasons that Apple does not document."
        ) { status in
            labelled("reason", status.lettersByReason)
        },
        counter(
            "lamplighter_failures_merged_total",
            "Failures that share a dead letter with others for want of room."
        ) { $0.counters.failuresMerged },
        counter(
            "lamplighter_failures_repeated_total",
            "Failed pushes that were counted, since a dead letter had said the same of their token "
                + "within `deadLetters.repeatAfter`; one letter gives their number at its end."
        ) { $0.counters.failuresRepeated },
        counter(
            "lamplighter_suppressions_written_total",
            "Tokens that were recorded as dead after an answer of APNs."
        ) { $0.counters.suppressionsWritten },
    ]

    // MARK: Events and pushes

    static let pushes: [Metric] = [
        metric(
            "lamplighter_record_notes_total", .counter, labels: ["topic", "kind"],
            "What records had that their topic's binding could not judge, or that their producer hardly "
                + "meant, by kind: a condition that never holds for such a value (`conditionType`), "
                + "`changed` without the row before (`unknownChange`), an `attribute` of a CloudEvent "
                + "or a `timeAhead` that was passed over, a push outside of `payload` (`strayPush`), a "
                + "column that the database did not send (`unsentColumn`). `lamplighter status` says "
                + "which field."
        ) { status in
            status.recordNoteTotals.map { note in
                MetricFamily.Series(
                    .integer(note.count), [(name: "topic", value: note.topic), ("kind", note.kind)])
            }
        },
        metric(
            "lamplighter_events_total", .counter, labels: ["topic", "outcome"],
            "Events by what came of them when they were read. `matched` ones asked for pushes; nobody "
                + "showed the subject of an `unmatched` one, though a token that registers just "
                + "afterwards is still sent it; the subject of a `passedOver` one is shown, but "
                + "by no token of its classes, kinds, environment or push type; one that was "
                + "`filtered` is left out by its topic's binding; one that was `split` comes again as "
                + "shards; a `remembered` one had ended under the worker that had its partition before; "
                + "a restriction has `dropped` the topic or the subject of a `dropped` one; a "
                + "`withheld` one is for more tokens than `planning.fanOutMax`, and is a dead letter."
        ) { status in
            status.events.map { events in
                MetricFamily.Series(
                    .integer(events.count),
                    [(name: "topic", value: events.topic), ("outcome", events.outcome)])
            }
        },
        counter(
            "lamplighter_subjects_dropped_total",
            "How often a drop has left out a subject of an event as the event was read (its other "
                + "subjects are fanned out), or has stopped a fan-out under way, once for all events "
                + "that shared it."
        ) { $0.counters.subjectsDropped },
        counter(
            "lamplighter_pushes_queued_total", "Pushes that events asked for and that were queued."
        ) { $0.counters.pushesQueued },
        metric(
            "lamplighter_demand_pushes", .gauge, labels: ["of"],
            "About how many pushes events have asked for in the last minute or two: of `all`, and of the "
                + "one subject, topic and app that asked for most, which `lamplighter status` names."
        ) { status in
            let demand = status.demand
            return labelled(
                "of",
                [
                    ("all", demand.pushes), ("subject", demand.subjects.first?.pushes ?? 0),
                    ("topic", demand.topics.first?.pushes ?? 0),
                    ("app", demand.apps.first?.pushes ?? 0),
                ])
        },
        counter(
            "lamplighter_pushes_coalesced_total",
            "Pushes that were asked for while their token had one already: that one, or its "
                + "follow-up, answers for them."
        ) { $0.counters.pushesCoalesced },
        counter(
            "lamplighter_pushes_followed_up_total",
            "Follow-ups: pushes that were queued when the one before them had ended, since that one "
                + "could not answer for a later event."
        ) { $0.counters.pushesFollowedUp },
        counter(
            "lamplighter_pushes_held_by_gap_total",
            "How often a push had to wait because its token was sent another one less than the "
                + "minimum gap before (`planning.minimumGap`)."
        ) { $0.counters.pushesHeldByGap },
        counter(
            "lamplighter_pushes_without_gap_total",
            "Pushes that were sent without regard to the minimum gap, since the deferred topic had no "
                + "room for them, or had acknowledged nothing of their partition for five seconds."
        ) { $0.counters.pushesWithoutGap },
        counter(
            "lamplighter_deferred_forgotten_total",
            "How often a record of the deferred topic was left in Kafka, or its push has left the "
                + "memory, for want of room."
        ) { $0.counters.deferredForgotten },
        counter(
            "lamplighter_deferred_readings_total",
            "How often a partition of the deferred topic was read again for what had been left there."
        ) { $0.counters.deferredReadings },
        counter(
            "lamplighter_gaps_forgotten_total",
            "Pushes after which no minimum gap is kept, since `delivery.deferredMax` tokens of this "
                + "worker are within theirs."
        ) { $0.counters.gapsForgotten },
        counter(
            "lamplighter_pushes_over_budget_total",
            "Accepted pushes above what their token should be sent a day (`planning.budget`)."
        ) { $0.counters.pushesOverBudget },
        counter(
            "lamplighter_pushes_thinned_total",
            "How often a push was deferred to the end of a share of the day, since its token's budget "
                + "was spent (`planning.budget.thin`)."
        ) { $0.counters.pushesThinned },
        counter(
            "lamplighter_pushes_unqueued_total",
            "Pushes that ended while they were not in memory, such as those to suppressed tokens and "
                + "those that expired in the deferred topic."
        ) { $0.counters.pushesUnqueued },
        metric(
            "lamplighter_pushes_total", .counter, labels: ["app", "type", "outcome", "reason"],
            "Pushes that have ended, by how. The reason is APNs's or the worker's own (`other` for one "
                + "that Apple does not document), and empty where there is none. The token of an "
                + "`unsubscribed` one had ceased to show the subject of its payload; a `shadowed` one would "
                + "have been sent, if `delivery.mode` were not `shadow`, and an `other_sender` one is left to "
                + "another sender by a rollout."
        ) { status in
            status.pushes.map { pushes in
                let labels = [
                    (name: "app", value: pushes.app), ("type", pushes.type),
                    ("outcome", pushes.outcome), ("reason", pushes.reason),
                ]
                return MetricFamily.Series(.integer(pushes.count), labels)
            }
        },
        metric(
            "lamplighter_event_to_accepted_seconds", .histogram, labels: ["type"],
            "The time from the oldest event that a push answers for, by the timestamp of its record, "
                + "to the acceptance of the push, in whole milliseconds. Pushes for a token that "
                + "registered after the event are left out. A clock that is behind counts as 0."
        ) { status in
            status.eventToAccepted.map { accepted in
                MetricFamily.Series(
                    .latency(accepted.times), [(name: "type", value: accepted.type.name)])
            }
        },
        metric(
            "lamplighter_oldest_waiting_seconds", .gauge, labels: [],
            "The age of the oldest event of which a push waits in memory to be sent, by the timestamp "
                + "of its record; 0 if none waits."
        ) { [MetricFamily.Series(.number($0.load.oldestWaiting?.seconds ?? 0))] },
        metric(
            "lamplighter_oldest_uncommitted_seconds", .gauge, labels: [],
            "How long ago the oldest record was read whose offset cannot be committed yet; 0 if there "
                + "is none. It is at least index.registrationGrace while events come."
        ) { [MetricFamily.Series(.number($0.load.oldestUncommitted?.seconds ?? 0))] },
        metric(
            "lamplighter_offset_hold_allowed_seconds", .gauge, labels: [],
            "How long an event that nothing delays may hold its offset: the longest of "
                + "`delivery.holdMax`, `index.registrationGrace` and `planning.spread`."
        ) { [MetricFamily.Series(.number($0.holdMax.seconds))] },
        counter(
            "lamplighter_pushes_deferred_total",
            "Pushes that were to be kept in the deferred topic because they had to wait."
        ) { $0.counters.deferred },
        counter(
            "lamplighter_pushes_resumed_total",
            "Pushes that came back from the deferred topic and were queued."
        ) { $0.counters.deferredSent },
        metric(
            "lamplighter_pushes_waiting", .gauge, labels: ["state"],
            "Pushes in memory: queued, in flight, resting before another try, or deferred."
        ) { status in
            labelled(
                "state",
                [
                    ("queued", status.load.queued), ("in_flight", status.load.inFlight),
                    ("resting", status.load.resting), ("deferred", status.load.deferred),
                ])
        },
        gauge(
            "lamplighter_tokens_within_gap",
            "Tokens that were sent a push less than the minimum gap ago and are owed none. Each takes "
                + "a row of the deferred topic, as a deferred push does (`delivery.deferredMax`)."
        ) { $0.load.tokensWithinGap },
        gauge(
            "lamplighter_deferred_held_back",
            "Deferred pushes that have expired by this worker's clock and by no record's time: the "
                + "clock may be ahead, so they are neither sent nor ended."
        ) { $0.clockDoubt.deferred },
        gauge(
            "lamplighter_partitions_held_by_clock",
            "Partitions of events that are not read, since this worker's clock is more than ten "
                + "minutes ahead of the records that are being written."
        ) { $0.clockDoubt.partitions },
        metric(
            "lamplighter_canary_period_seconds", .gauge, labels: [],
            "How often this worker writes a canary, an event of the operator's own (`canary.every`); "
                + "no series where none are written."
        ) { status in
            status.canary.map { [MetricFamily.Series(.number($0.every.seconds))] } ?? []
        },
        metric(
            "lamplighter_canary_silence_seconds", .gauge, labels: [],
            "How long ago the newest canary was written that has come through to APNs, or since when "
                + "one is expected; no series while the group has given this worker no partition to write to."
        ) { status in
            status.canary?.silence.map { [MetricFamily.Series(.number($0.seconds))] } ?? []
        },
        metric(
            "lamplighter_canary_latency_seconds", .gauge, labels: [],
            "The time from writing the newest canary that has come through to APNs's answer."
        ) { status in
            status.canary?.latency.map { [MetricFamily.Series(.number($0.seconds))] } ?? []
        },
        metric(
            "lamplighter_canaries_total", .counter, labels: ["outcome"],
            "Canaries that this worker has `written`, and those of them that `cameThrough`: APNs has "
                + "answered 200, or 410 for a token that is dead."
        ) { status in
            guard let counts = status.canary?.counts else { return [] }
            return labelled(
                "outcome", [("written", counts.written), ("cameThrough", counts.cameThrough)])
        },
        gauge(
            "lamplighter_restrictions_unread",
            "1 while the worker sends though it could not read the restrictions when it started: "
                + "what operators have paused, dropped or limited is sent."
        ) { $0.lacksRestrictions ? 1 : 0 },
        gauge(
            "lamplighter_deferred_left",
            "About how many records of this worker's partitions of the deferred topic are left in "
                + "Kafka, since it has no room for their pushes (`delivery.deferredMax`, "
                + "`delivery.queuedBytesMax`). They are read again when they may be sent."
        ) { $0.load.forgotten },
        metric(
            "lamplighter_tokens_over_budget", .gauge, labels: ["type"],
            "Tokens that this worker has sent more pushes today than their budget "
                + "(`planning.budget`). A day is one of UTC."
        ) { status in labelled("type", status.budgets.map { ($0.type, $0.tokensOver) }) },
        gauge("lamplighter_events_held", "Events whose offsets wait for some push or record.") {
            $0.load.claims
        },
        gauge(
            "lamplighter_records_unacknowledged",
            "Records of the worker's own that Kafka has not acknowledged yet."
        ) { $0.load.unacknowledged },
    ]
}
