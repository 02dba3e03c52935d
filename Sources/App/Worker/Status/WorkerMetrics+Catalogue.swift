// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSDelivery
internal import Delivery
internal import Pipeline
internal import PushModel
internal import Telemetry

extension WorkerMetrics {
    // MARK: The process

    static let process: [Metric] = [
        metric(
            "lamplighter_build_info", .info, labels: ["version", "commit"],
            "What this worker was built from."
        ) { status in
            let build = status.process.build
            let labels = [(name: "version", value: build.version), ("commit", build.commit)]
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
        gauge(
            "process_start_time_seconds", "When the worker was started, in Unix time."
        ) { status in
            Int(status.process.startedAt.milliseconds / 1000)
        },
        gauge(
            "process_resident_memory_bytes", "Memory of the process that is in RAM."
        ) { $0.process.residentBytes },
    ]

    // MARK: The index

    static let index: [Metric] = [
        gauge("lamplighter_index_tokens", "Push tokens that some registration holds.") {
            $0.index.tokens
        },
        gauge("lamplighter_index_subjects", "Subjects that some token shows.") {
            $0.index.subjects
        },
        gauge("lamplighter_index_subscriptions", "Pairs of a token and a subject that it shows.") {
            $0.index.subscriptions
        },
        gauge("lamplighter_index_registrations", "Registrations in force, one for each record key.")
        {
            $0.index.installations
        },
        gauge("lamplighter_index_memory_bytes", "Memory of the index.") { $0.index.bytes },
        metric(
            "lamplighter_index_lag_records", .gauge, labels: ["topic"],
            "Records of a compacted topic that the index has not read yet."
        ) { status in
            labelled("topic", status.index.tables.map { ($0.topic, Int($0.unread)) })
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
        counter(
            "lamplighter_registrations_unreadable_total",
            "Records of registrations that were set aside because they could not be read."
        ) { $0.counters.registrationsUnreadable },
        counter(
            "lamplighter_registration_rows_set_aside_total",
            "Rows of readable registrations that could not be used, such as of an unknown app."
        ) { $0.counters.registrationRowsSetAside },
        counter(
            "lamplighter_suppressions_read_total",
            "Records of suppressions that were read, replays included."
        ) { $0.counters.suppressionsRead },
    ]

    // MARK: Kafka

    static let log: [Metric] = [
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
        counter(
            "lamplighter_dead_letters_written_total", "Dead letters that were written."
        ) { $0.counters.deadLettersWritten },
        counter(
            "lamplighter_failures_merged_total",
            "Failures that share a dead letter with others for want of room."
        ) { $0.counters.failuresMerged },
        counter(
            "lamplighter_suppressions_written_total",
            "Tokens that were recorded as dead after an answer of APNs."
        ) { $0.counters.suppressionsWritten },
    ]

    // MARK: Events and pushes

    static let pushes: [Metric] = [
        metric(
            "lamplighter_events_total", .counter, labels: ["outcome"],
            "Events that were read, by what came of them. `matched` ones asked for pushes; an event "
                + "that was `split` comes again as shards."
        ) { status in
            let counters = status.counters
            let others = [
                ("unmatched", counters.eventsUnmatched), ("unreadable", counters.eventsUnreadable),
                ("expired", counters.eventsExpired), ("skipped", counters.eventsSkipped),
                ("split", counters.eventsSplit),
            ]
            let matched = counters.events - others.reduce(0) { $0 + $1.1 }
            return labelled("outcome", [("matched", max(0, matched))] + others)
        },
        counter("lamplighter_pushes_queued_total", "Pushes that events asked for.") {
            $0.counters.pushesQueued
        },
        counter(
            "lamplighter_pushes_coalesced_total",
            "Pushes that were asked for and that one which waited already answers for."
        ) { $0.counters.pushesCoalesced },
        metric(
            "lamplighter_pushes_total", .counter, labels: ["outcome"],
            "Pushes that have ended, by how."
        ) { status in
            let counters = status.counters
            return labelled(
                "outcome",
                [
                    ("accepted", counters.accepted), ("rejected", counters.rejected),
                    ("expired", counters.expired), ("suppressed", counters.suppressed),
                    ("unregistered", counters.unregistered),
                    ("dead_unconfirmed", counters.deadUnconfirmed),
                    ("superseded", counters.deferredSuperseded),
                ])
        },
        counter(
            "lamplighter_pushes_deferred_total",
            "Pushes that were written to the deferred topic because they had to wait."
        ) { $0.counters.deferred },
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
        gauge("lamplighter_events_held", "Events whose offsets wait for some push or record.") {
            $0.load.holders
        },
        gauge(
            "lamplighter_records_unacknowledged",
            "Records of the worker's own that Kafka has not acknowledged yet."
        ) { $0.load.unacknowledged },
        gauge("lamplighter_payload_memory_bytes", "Memory of the payloads that wait.") {
            $0.load.payloadBytes
        },
    ]

    // MARK: Delivery

    static let delivery: [Metric] =
        [
            metric(
                "lamplighter_breaker_open", .gauge, labels: ["breaker"],
                "1 while a circuit breaker keeps the pushes of a credential or of a route back."
            ) { status in
                labelled("breaker", status.breakers.map { ($0.name, 1) })
            },
            metric(
                "lamplighter_retries_total", .counter, labels: ["cause"],
                "Pushes that were sent again, or are to be: after a 5xx (`retry`), without having been "
                    + "processed (`unprocessed`), with no answer (`unknown`), after TooManyRequests "
                    + "(`cooldown`)."
            ) { status in
                let counters = status.counters
                return labelled(
                    "cause",
                    [
                        ("retry", counters.retried), ("unprocessed", counters.unprocessed),
                        ("unknown", counters.resent), ("cooldown", counters.cooledDown),
                    ])
            },
            metric(
                "lamplighter_apns_round_trip_seconds", .histogram, labels: [],
                "The time from sending a request to APNs to the planner's taking in the answer."
            ) { [MetricFamily.Series(.latency($0.roundTrips))] },
        ] + transport

    private static let transport: [Metric] = [
        transport("connects", "Connections to APNs that were opened.", \.connects),
        transport(
            "connect_failures", "Attempts to open a connection to APNs that failed.",
            \.connectFailures),
        transport(
            "certificates_refused", "Connections that failed because of APNs's certificate.",
            \.certificatesRefused),
        transport("goaways", "GOAWAY frames that APNs sent.", \.goAways),
        transport(
            "connections_lost", "Connections that ended with requests in flight.",
            \.connectionsLost),
        transport("requests", "Requests that were sent to APNs.", \.requests),
        transport(
            "requests_refused", "Requests that APNs refused without processing them.", \.refused),
        transport("request_timeouts", "Requests that APNs did not answer in time.", \.timeouts),
    ]

    private static func transport(
        _ name: String, _ help: String,
        _ value: any KeyPath<TransportCounts, UInt64> & Sendable
    ) -> Metric {
        metric("lamplighter_apns_\(name)_total", .counter, labels: ["thread"], help) { status in
            labelled(
                "thread",
                status.transports.enumerated().map { ("\($0)", Int($1[keyPath: value])) })
        }
    }
}
