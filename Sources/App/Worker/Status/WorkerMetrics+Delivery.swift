// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSDelivery
internal import Delivery
internal import Pipeline
internal import PushModel
internal import Telemetry

extension WorkerMetrics {
    // MARK: Delivery

    static let delivery: [Metric] =
        [
            metric(
                "lamplighter_breaker_state", .gauge,
                labels: ["of", "credential", "environment", "app", "apns_topic"],
                "The circuit breaker of a credential (`of` is `credential`, and `app` and "
                    + "`apns_topic` are empty), of its broadcasts to channels from the first on (`of` "
                    + "is `broadcasts`), or of an APNs topic once it has opened (`of` is `topic`): 0 is closed, 1 half-open (one probe at a time), 2 open (pushes "
                    + "wait)."
            ) { $0.breakerPhases.map(series) },
            metric(
                "lamplighter_breakers_opened_total", .counter, labels: ["of"],
                "How often a circuit breaker of a credential or of an APNs topic has opened."
            ) { status in
                labelled(
                    "of",
                    [
                        ("credential", status.counters.poolBreakersOpened),
                        ("topic", status.counters.routeBreakersOpened),
                    ])
            },
            metric(
                "lamplighter_retries_total", .counter, labels: ["cause"],
                "Pushes that were sent again, or are to be: after a 5xx (`fault`), after "
                    + "TooManyRequests (`cooldown`), since the connection was to be left (`moved`), "
                    + "without having been processed (`unprocessed`), since their credential or "
                    + "topic was refused (`refused`), or without an answer (`unanswered`), so "
                    + "that APNs may get them twice."
            ) { status in
                let counters = status.counters
                return labelled(
                    "cause",
                    [
                        ("fault", counters.retried), ("cooldown", counters.cooledDown),
                        ("moved", counters.resent), ("unprocessed", counters.unprocessed),
                        ("refused", counters.requeued), ("unanswered", counters.unanswered),
                    ])
            },
            metric(
                "lamplighter_apns_round_trip_seconds", .histogram, labels: [],
                "The time from sending a request to APNs to the planner's taking in the answer."
            ) { [MetricFamily.Series(.latency($0.roundTrips))] },
            metric(
                "lamplighter_apns_connect_seconds", .histogram, labels: [],
                "How long connects to APNs took that succeeded: name look-up, TCP and TLS handshake."
            ) { [MetricFamily.Series(.latency($0.connectTimes))] },
        ] + pools + transport

    private static func series(_ breaker: WorkerStatus.BreakerPhase) -> MetricFamily.Series {
        let labels = [
            (
                name: "of",
                value: breaker.app.isEmpty
                    ? (breaker.isForBroadcasts ? "broadcasts" : "credential") : "topic"
            ),
            ("credential", breaker.credential), ("environment", breaker.environment.name),
            ("app", breaker.app), ("apns_topic", breaker.apnsTopic),
        ]
        return MetricFamily.Series(.integer(breaker.phase.rawValue), labels)
    }

    private static let pools: [Metric] = [
        pool(
            "connections", .gauge,
            "Connections to APNs on which it has accepted the credential's provider token."
        ) { .integer($0.connections) },
        pool(
            "connections_ill", .gauge,
            "Connections to APNs with faults (5xx or no answer) in at least three of their last eight "
                + "requests. While most of a credential's are not, its breaker stays closed."
        ) { .integer($0.connectionsIll) },
        pool("streams", .gauge, "Requests to APNs in flight.") { .integer($0.streams) },
        pool(
            "streams_limit", .gauge,
            "How many requests may be in flight on the connections by the limits that APNs has set."
        ) { .integer($0.streamsMax) },
        pool(
            "provider_token_age_seconds", .gauge,
            "The age of the provider token in use; a new one is made after 45 minutes."
        ) { pool in pool.providerTokenAge.map { .number($0.seconds) } },
        pool(
            "provider_token_refusals_total", .counter,
            "Answers with which APNs refused the credential."
        ) { .integer($0.refusals) },
        ofConnections("connects", "Connections to APNs that were opened.", \.connects),
        ofConnections(
            "connect_failures", "Attempts to open a connection to APNs that failed.",
            \.connectFailures),
        ofConnections(
            "certificates_refused", "Connections that failed because of APNs's certificate.",
            \.certificatesRefused),
        ofConnections(
            "http2_refused", "Connections that failed because the server speaks no HTTP/2.",
            \.http2Refused),
        ofConnections("goaways", "GOAWAY frames that APNs sent.", \.goAways),
        ofConnections(
            "connections_lost", "Connections that ended with requests in flight.",
            \.connectionsLost),
        ofConnections(
            "connections_retired_failing",
            "Connections that were replaced because their requests failed.", \.retiredForFailures),
        ofConnections(
            "connections_retired_silent",
            "Connections that were replaced because they answered nothing while others did.",
            \.retiredForSilence),
    ]

    private static func ofConnections(
        _ name: String, _ help: String,
        _ value: any KeyPath<ConnectionCounts, UInt64> & Sendable
    ) -> Metric {
        pool("\(name)_total", .counter, help) { .integer(Int($0.connected[keyPath: value])) }
    }

    private static func pool(
        _ name: String, _ kind: MetricFamily.Kind, _ help: String,
        _ value: @escaping @Sendable (WorkerStatus.Pool) -> MetricFamily.Value?
    ) -> Metric {
        metric(
            "lamplighter_apns_\(name)", kind, labels: ["credential", "environment", "service"], help
        ) { status in
            status.pools.compactMap { pool in
                let labels = [
                    (name: "credential", value: pool.credential),
                    ("environment", pool.environment),
                    // An empty label is none: the series of devices stay what they were.
                    ("service", pool.service ?? ""),
                ]
                return value(pool).map { MetricFamily.Series($0, labels) }
            }
        }
    }

    private static let transport: [Metric] = [
        transport("requests", "Requests that were sent to APNs.", \.requests),
        transport(
            "requests_refused", "Requests that APNs refused without processing them.", \.refused),
        transport("request_timeouts", "Requests that APNs did not answer in time.", \.timeouts),
        transport(
            "requests_reset", "Requests whose streams APNs reset, other than to refuse them.",
            \.resets),
        transport(
            "sent_bytes", "Bytes sent to APNs before encryption; 0 with the curl transport.",
            \.bytesSent),
        transport(
            "received_bytes",
            "Bytes received from APNs after decryption; 0 with the curl transport.",
            \.bytesReceived),
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
