# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""The dashboard's panels and their queries; dashboard.py makes lamplighter.json of them."""

# What every query chooses: the fleet, and the workers of it.
CHOSEN = 'namespace=~"$namespace", job=~"$job", instance=~"$instance"'


def chosen(metric, matchers=""):
    """The series of a metric that the variables choose, and the matchers beside them."""
    return f"{metric}{{{CHOSEN}{', ' + matchers if matchers else ''}}}"


def rate(metric, matchers=""):
    return f"rate({chosen(metric, matchers)}[$__rate_interval])"


def per_second(metric, by="", matchers=""):
    return f"sum{f' by ({by})' if by else ''} ({rate(metric, matchers)})"


def increase(metric, by=""):
    return f"sum{f' by ({by})' if by else ''} (increase({chosen(metric)}[$__rate_interval]))"


def total(metric, by="", matchers=""):
    return f"sum{f' by ({by})' if by else ''} ({chosen(metric, matchers)})"


def largest(metric, by=""):
    return f"max{f' by ({by})' if by else ''} ({chosen(metric)})"


def quantile(share, histogram, by=""):
    labels = f"le, {by}" if by else "le"
    return f"histogram_quantile({share}, sum by ({labels}) ({rate(histogram + '_bucket')}))"


FRESH = "lamplighter_event_to_accepted_seconds"
ROUND_TRIP = "lamplighter_apns_round_trip_seconds"
IN_TIME = rate(FRESH + "_bucket", 'le="2.048"')
DUE = rate(FRESH + "_count") + " or " + rate("lamplighter_pushes_total", 'outcome="expired"')
FRESH_SHARE = f"sum ({IN_TIME}) / sum ({DUE})"
POOL = "credential, environment"
BREAKER = "credential, environment, apns_topic"
# The alerts have no worker where they are a fleet's.
FIRING = 'ALERTS{alertname=~"Lamplighter.*", alertstate="firing", namespace=~"$namespace", job=~"$job"}'


def registrars(before, metric, after):
    """A query of registrars: they are another job than the workers, so that only the namespace is chosen."""
    return f'{before}lamplighter_registrar_{metric}{{namespace=~"$namespace"}}{after}'


# Rows, each with its panels: title, kind, unit, queries with their legends, and what it means where
# the title does not say it.
ROWS = [
    ("Now", [
        ("Fresh within 2 s", "stat", "percentunit", [(FRESH_SHARE, "")],
         "Of the pushes that ended lately: accepted within 2.048 s of their event, neither late nor expired."),
        ("Accepted", "stat", "pushes/s",
         [(per_second("lamplighter_pushes_total", matchers='outcome="accepted"'), "")], ""),
        ("Workers running", "stat", "short",
         [(total("lamplighter_phase", matchers='phase="running"'), "")], ""),
        ("Lag of all topics", "stat", "short", [(total("lamplighter_partition_lag_records"), "")],
         "Records of events that are not committed yet."),
        ("Circuit breakers not closed", "stat", "short",
         [(f"sum ({chosen('lamplighter_breaker_state')} > bool 0)", "")], ""),
        ("Alerts", "stat", "short",
         [(f"count({FIRING}) or vector(0)", "")],
         "Those of deploy/prometheus/rules.yaml; docs/runbook.md says what to do."),
    ]),
    ("Freshness", [
        ("Event to acceptance", "timeseries", "s",
         [(quantile(0.5, FRESH, "type"), "p50 {{type}}"), (quantile(0.99, FRESH, "type"), "p99 {{type}}")],
         "From the event's timestamp in Kafka. A delay of its binding is part of it."),
        ("Late pushes", "timeseries", "percentunit", [(f"1 - {FRESH_SHARE}", "late or expired")],
         "The objective is at most 1 % over 30 days."),
        ("Oldest", "timeseries", "s",
         [(largest("lamplighter_oldest_waiting_seconds"), "event with a push that waits"),
          (largest("lamplighter_oldest_uncommitted_seconds"), "offset that is held"),
          (largest("lamplighter_offset_hold_allowed_seconds"), "offset, as long as it may be held")], ""),
        ("Event to acceptance, all types", "heatmap", "s", [(per_second(FRESH + "_bucket", "le"), "{{le}}")], ""),
        ("Canaries", "timeseries", "s",
         [(largest("lamplighter_canary_silence_seconds"), "since the newest that came through was written"),
          (largest("lamplighter_canary_period_seconds"), "period"),
          (largest("lamplighter_canary_latency_seconds"), "to APNs's answer")],
         "The worst of all workers; without canary.every there is nothing to see."),
        ("Canaries that came through", "timeseries", "short",
         [(increase("lamplighter_canaries_total", "outcome"), "{{outcome}}")], ""),
    ]),
    ("Throughput and outcomes", [
        ("Events read", "timeseries", "events/s",
         [(per_second("lamplighter_events_total", "outcome"), "{{outcome}}")], ""),
        ("Pushes ended", "timeseries", "pushes/s",
         [(per_second("lamplighter_pushes_total", "outcome"), "{{outcome}}")], ""),
        ("Accepted, by app and type", "timeseries", "pushes/s",
         [(per_second("lamplighter_pushes_total", "app, type", 'outcome="accepted"'), "{{app}} {{type}}")], ""),
        ("Pushes that APNs did not accept", "timeseries", "pushes/s",
         [(per_second("lamplighter_pushes_total", "outcome, reason", 'outcome!="accepted"'),
           "{{outcome}} {{reason}}")], ""),
        ("Who asks", "timeseries", "short",
         [(total("lamplighter_demand_pushes", "of"), "{{of}}")],
         "About how many pushes were asked for in the last minute or two, and how many by the one subject, topic "
         "and app of each worker that asked for most. `lamplighter status` names them."),
        ("Asked for", "timeseries", "pushes/s",
         [(per_second("lamplighter_pushes_queued_total"), "queued"),
          (per_second("lamplighter_pushes_coalesced_total"), "coalesced"),
          (per_second("lamplighter_pushes_followed_up_total"), "followed up"),
          (per_second("lamplighter_pushes_deferred_total"), "deferred"),
          (per_second("lamplighter_pushes_resumed_total"), "resumed"),
          (per_second("lamplighter_pushes_held_by_gap_total"), "wait for a gap"),
          (per_second("lamplighter_pushes_thinned_total"), "thinned"),
          (per_second("lamplighter_pushes_over_budget_total"), "above a budget"),
          (per_second("lamplighter_pushes_unqueued_total"), "never queued")], ""),
        ("Dead letters", "timeseries", "short",
         [(increase("lamplighter_dead_letters_written_total", "reason"),
           "{{reason}}")], ""),
        ("Outcomes", "timeseries", "ops",
         [(per_second("lamplighter_outcomes_written_total"), "written"),
          (per_second("lamplighter_outcomes_dropped_total", "reason"), "dropped, {{reason}}")],
         "Records of ended pushes, where kafka.topics.outcomes names a topic. No push waits for them."),
    ]),
    ("APNs", [
        ("Round trip", "timeseries", "s",
         [(quantile(0.5, ROUND_TRIP), "p50"), (quantile(0.99, ROUND_TRIP), "p99"),
          (quantile(0.99, "lamplighter_apns_connect_seconds"), "p99 of connects")], ""),
        ("Circuit breakers", "state-timeline", "short",
         [(largest("lamplighter_breaker_state", BREAKER), "{{credential}} {{environment}} {{apns_topic}}")],
         "The worst of the workers' states."),
        ("Connections", "timeseries", "short",
         [(total("lamplighter_apns_connections", POOL), "{{credential}} {{environment}}"),
          (total("lamplighter_apns_connections_ill", POOL), "ill of {{credential}} {{environment}}")],
         "Those that are ill are replaced one at a time."),
        ("Streams", "timeseries", "short",
         [(total("lamplighter_apns_streams", POOL), "{{credential}} {{environment}}"),
          (total("lamplighter_apns_streams_limit", POOL), "limit of {{credential}} {{environment}}")], ""),
        ("Provider tokens", "timeseries", "s",
         [(largest("lamplighter_apns_provider_token_age_seconds", POOL), "{{credential}} {{environment}}")],
         "A new one is made after 45 minutes, when there is something to send."),
        ("Refusals and opened breakers", "timeseries", "short",
         [(increase("lamplighter_apns_provider_token_refusals_total", POOL),
           "{{credential}} {{environment}} refused"),
          (increase("lamplighter_breakers_opened_total", "of"),
           "breakers opened of a {{of}}")], ""),
        ("Tried again", "timeseries", "pushes/s",
         [(per_second("lamplighter_retries_total", "cause"), "{{cause}}")], ""),
        ("Connections that come and go", "timeseries", "ops",
         [(per_second("lamplighter_apns_connects_total"), "opened"),
          (per_second("lamplighter_apns_connect_failures_total"), "failed"),
          (per_second("lamplighter_apns_connections_lost_total"), "lost"),
          (per_second("lamplighter_apns_connections_retired_failing_total"), "replaced, failing"),
          (per_second("lamplighter_apns_connections_retired_silent_total"), "replaced, silent"),
          (per_second("lamplighter_apns_goaways_total"), "GOAWAY"),
          (per_second("lamplighter_apns_certificates_refused_total"), "certificate refused"),
          (per_second("lamplighter_apns_http2_refused_total"), "no HTTP/2")], ""),
        ("Requests", "timeseries", "reqps",
         [(per_second("lamplighter_apns_requests_total"), "sent"),
          (per_second("lamplighter_apns_requests_refused_total"), "refused unprocessed"),
          (per_second("lamplighter_apns_request_timeouts_total"), "unanswered"),
          (per_second("lamplighter_apns_requests_reset_total"), "reset")], ""),
        ("Bytes", "timeseries", "Bps",
         [(per_second("lamplighter_apns_sent_bytes_total"), "to APNs"),
          (per_second("lamplighter_apns_received_bytes_total"), "from APNs")], ""),
    ]),
    ("Kafka", [
        ("Lag", "timeseries", "short",
         [(total("lamplighter_partition_lag_records", "topic"), "{{topic}}, not committed"),
          (largest("lamplighter_topic_unread_records", "topic"), "{{topic}}, not read, largest of a worker")], ""),
        ("Topics left in Kafka for others", "timeseries", "short",
         [(increase("lamplighter_topic_waits_total", "topic"), "{{topic}}"),
          (total("lamplighter_topic_waiting", "topic"), "{{topic}}, workers that leave it now")], ""),
        ("Partitions with the largest lag", "timeseries", "short",
         [(f"topk(8, {total('lamplighter_partition_lag_records', 'topic, partition')})",
           "{{topic}}/{{partition}}")], ""),
        ("Partitions", "timeseries", "short",
         [(total("lamplighter_partitions_assigned", "instance, topic"), "{{instance}} {{topic}}"),
          (total("lamplighter_partitions_unavailable", "instance"), "{{instance}} cannot be read"),
          (total("lamplighter_partitions_held", "instance"), "{{instance}} held for a schema")], ""),
        ("Replay", "timeseries", "short",
         [(total("lamplighter_replay_records", "instance, state"), "{{instance}} {{state}}"),
          (largest("lamplighter_replay_left_seconds", "instance"), "{{instance}} seconds left")],
         "Records of registrations, suppressions and restrictions, at a start."),
        ("Restrictions", "timeseries", "short",
         [(largest("lamplighter_restrictions", "action, origin"), "{{action}} by {{origin}}")],
         "In force, by commands and by the configuration."),
        ("Schemas asked for", "timeseries", "ops",
         [(per_second("lamplighter_schema_requests_total", "outcome"), "{{outcome}}")], "Of the schema registry."),
        ("Blocked topics", "state-timeline", "short",
         [(largest("lamplighter_topic_blocked", "topic"), "{{topic}}")],
         "1 while Kafka takes none of the worker's records."),
        ("Records of the workers' own", "timeseries", "short",
         [(total("lamplighter_records_unacknowledged"), "unacknowledged"),
          (increase("lamplighter_records_refused_total"), "refused"),
          (increase("lamplighter_records_abandoned_total"), "given up"),
          (increase("lamplighter_failures_merged_total"), "failures merged"),
          (increase("lamplighter_failures_repeated_total"), "failures repeated"),
          (increase("lamplighter_gaps_forgotten_total"), "minimum gaps not kept"),
          (increase("lamplighter_pushes_without_gap_total"), "pushes sent without a gap"),
          (increase("lamplighter_subjects_dropped_total"), "subjects dropped by an operator")],
         ""),
        ("Read again", "timeseries", "events/s",
         [(per_second("lamplighter_records_redelivered_total", "instance"), "{{instance}}")],
         "After rebalances; their pushes may have been sent twice."),
    ]),
    ("Waiting", [
        ("Pushes in memory", "timeseries", "short",
         [(total("lamplighter_pushes_waiting", "state"), "{{state}}"),
          (total("lamplighter_tokens_within_gap"), "tokens within their minimum gap"),
          (total("lamplighter_tokens_over_budget", "type"), "tokens above their budget, {{type}}")],
         ""),
        ("Deferred records left in Kafka", "timeseries", "short",
         [(total("lamplighter_deferred_left", "instance"), "{{instance}}"),
          (per_second("lamplighter_deferred_forgotten_total"), "left, a second"),
          (per_second("lamplighter_deferred_readings_total"), "partitions read again, a second")],
         "For want of room; they are read again when they may be sent."),
        ("Held back by a doubtful clock, or sent without restrictions", "timeseries", "short",
         [(total("lamplighter_deferred_held_back", "instance"), "deferred pushes, {{instance}}"),
          (total("lamplighter_partitions_held_by_clock", "instance"), "partitions of events, {{instance}}"),
          (total("lamplighter_restrictions_unread", "instance"), "restrictions unread, {{instance}}")],
         "The worker's clock is ahead of every record; or it could not read what operators have paused."),
        ("Events whose offsets are held", "timeseries", "short",
         [(total("lamplighter_events_held", "instance"), "{{instance}}")], ""),
    ]),
    ("Index", [
        ("Rows", "timeseries", "short",
         [(largest("lamplighter_index_tokens"), "tokens"),
          (largest("lamplighter_index_subjects"), "subjects"),
          (largest("lamplighter_index_subscriptions"), "subscriptions"),
          (largest("lamplighter_index_registrations"), "registrations"),
          (largest("lamplighter_index_suppressions"), "suppressions")],
         "Every worker has the whole index; the largest is shown."),
        ("Tokens by app and class", "timeseries", "short",
         [(largest("lamplighter_index_app_tokens", "app, environment, class"),
           "{{app}} {{environment}} {{class}}")],
         "How far the collecting of an app's tokens is."),
        ("Rollouts, percent of an app's tokens", "timeseries", "percent",
         [(largest("lamplighter_rollout_percent", "app"), "{{app}}")],
         "While another sender serves the others; workers that differ have not read the same record."),
        ("Workers that send nothing", "timeseries", "short",
         [(total("lamplighter_shadow"), "workers"),
          (per_second("lamplighter_shadow_log_lines_total", "state"), "lines of the log, {{state}}")],
         "Those in shadow mode."),
        ("Age", "timeseries", "s",
         [(largest("lamplighter_index_age_seconds", "topic"), "{{topic}}")],
         "Up to ten seconds is as it should be."),
        ("Snapshots that workers began with", "timeseries", "s",
         [(largest("lamplighter_index_snapshot_age_seconds", "instance"), "{{instance}}")],
         "How old each was at the start."),
        ("Records read", "timeseries", "ops",
         [(per_second("lamplighter_registrations_read_total", "instance"), "{{instance}} registrations"),
          (per_second("lamplighter_suppressions_read_total", "instance"), "{{instance}} suppressions")], ""),
        ("Suppressions written", "timeseries", "ops",
         [(per_second("lamplighter_suppressions_written_total"), "tokens called dead")], ""),
        ("Set aside", "timeseries", "short",
         [(total("lamplighter_records_set_aside_total", "topic, reason"), "records {{topic}} {{reason}}"),
          (total("lamplighter_registration_rows_set_aside_total", "topic, reason"), "rows {{topic}} {{reason}}"),
          (total("lamplighter_registration_rows_without_kind_total"), "rows without their kind")],
         "Since the start of the workers."),
        ("Odd events", "timeseries", "short",
         [(total("lamplighter_record_notes_total", "topic, kind"), "{{topic}} {{kind}}")],
         "What records had that their topic's binding could not judge, or that their producer hardly meant."),
        ("Misplaced records", "timeseries", "short",
         [(largest("lamplighter_records_misplaced_total", "topic"), "{{topic}}")],
         "Not in the partitions of their keys: a producer has another partitioner than murmur2. Every worker reads all."),
    ]),
    ("Workers", [
        ("Phase", "state-timeline", "short",
         [(f"sum by (instance, phase) ({chosen('lamplighter_phase')} == 1)", "{{instance}} {{phase}}")], ""),
        ("Memory", "timeseries", "bytes",
         [(f"{chosen('process_resident_memory_bytes')} and on (instance) {chosen('lamplighter_build_info')}",
           "{{instance}}")], ""),
        ("Memory, by part", "timeseries", "bytes",
         [(largest("lamplighter_memory_bytes", "part"), "{{part}}")], "The largest of the workers."),
        ("CPU", "timeseries", "short",
         [(f"{per_second('process_cpu_seconds_total', 'instance')} and on (instance) "
           f"{chosen('lamplighter_build_info')}", "{{instance}}")], "Cores."),
        ("File descriptors", "timeseries", "short",
         [(f"{chosen('process_open_fds')} and on (instance) {chosen('lamplighter_build_info')}",
           "{{instance}}"),
          (f"{chosen('process_max_fds')} and on (instance) {chosen('lamplighter_build_info')}",
           "limit of {{instance}}")], ""),
        ("Age of the processes", "timeseries", "s",
         [(f"time() - {chosen('process_start_time_seconds')} and on (instance) {chosen('lamplighter_build_info')}",
           "{{instance}}")], ""),
        ("Versions", "timeseries", "short",
         [(f"count by (version, commit) ({chosen('lamplighter_build_info')})", "{{version}} {{commit}}")], ""),
    ]),
    ("Registrars", [
        ("Requests", "timeseries", "reqps",
         [(registrars("sum by (method, status) (rate(", "requests_total", "[$__rate_interval]))"),
           "{{method}} {{status}}")], "Of all registrars of the namespace; a batch is one."),
        ("Writes that wait for Kafka", "timeseries", "short",
         [(registrars("sum by (job, instance) (", "writes_in_flight", ")"), "{{instance}}")], ""),
        ("Refused or written again", "timeseries", "short",
         [(registrars("sum by (job) (increase(", "unacknowledged_total", "[$__rate_interval]))"),
           "{{job}} not acknowledged in time"),
          (registrars("sum by (job) (increase(", "written_again_total", "[$__rate_interval]))"),
           "{{job}} written again after an older one")], ""),
        ("Partitions owned", "timeseries", "short",
         [(registrars("sum by (job, instance) (", "partitions", ")"), "{{instance}}"),
          (registrars("sum by (job, instance) (", "partitions_unavailable", ")"),
           "{{instance}} cannot be read")],
         "Together all partitions of the registrations topic."),
        ("Kafka answers registrars", "timeseries", "short",
         [(registrars("min by (job, instance) (", "kafka_answers", ")"), "{{instance}}")],
         "1 while it says who owns the registrations."),
        ("Registrations remembered", "timeseries", "short",
         [(registrars("sum by (job) (", "registrations", ")"), "{{job}}")], ""),
        ("Memory of registrations", "timeseries", "bytes",
         [(registrars("sum by (job, instance) (", "memory_bytes", ")"), "{{instance}}")], ""),
        ("Registrations read", "timeseries", "ops",
         [(registrars("sum by (job, instance) (rate(", "records_read_total", "[$__rate_interval]))"),
           "{{instance}}")], "Those of other writers too, and replays."),
        ("Versions of registrars", "timeseries", "short",
         [(registrars("count by (version, commit) (", "build_info", ")"), "{{version}} {{commit}}")], ""),
    ]),
    ("OpenTelemetry", [
        ("Exports", "timeseries", "ops",
         [(per_second("lamplighter_otlp_exports_total", "signal, outcome"), "{{signal}} {{outcome}}")], ""),
        ("Spans", "timeseries", "ops",
         [(per_second("lamplighter_otlp_spans_total", "outcome"), "{{outcome}}")], ""),
        ("Sampled events", "timeseries", "events/s",
         [(per_second("lamplighter_events_traced_total", "outcome"), "{{outcome}}")], ""),
    ]),
]
