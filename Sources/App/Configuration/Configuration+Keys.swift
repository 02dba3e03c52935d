// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

extension Configuration {
    /// The key table, in the order in which a push passes through the worker.
    static var keys: [ConfigurationKey<Configuration>] {
        [
            .section("kafka", \.kafka, Kafka.keys, "The Kafka cluster: brokers, topics, group."),
            .section("intake", \.intake, Intake.keys, "How event records are read."),
            .section("index", \.index, Index.keys, "The table of who shows what."),
            .section("planning", \.planning, Planning.keys, "Which pushes are made of an event."),
            .section("delivery", \.delivery, Delivery.keys, "How pushes are sent and tried again."),
            .section("apns", \.apns, APNS.keys, "Apple's service: signing keys and connections."),
            .section(
                "deadLetters", \.deadLetters, DeadLetters.keys,
                "What is written down of a push that failed for good."),
            .section(
                "canary", \.canary, Canary.keys,
                "Events of the operator's own, which show that pushes arrive."),
            .section(
                "health", \.health, Health.keys,
                "Where probes (`/livez`, `/readyz`, `/startupz`) and `/metrics` are served."),
            .section(
                "admin", \.admin, Admin.keys,
                "Where an operator's requests are answered, such as those of `lamplighter status`."),
            .section(
                "otlp", \.otlp, OTLP.keys,
                "Where metrics and spans are exported to, by OTLP over HTTP: see "
                    + "[opentelemetry.md](opentelemetry.md)."),
            .section(
                "registrar", \.registrar, Registrar.keys,
                "The HTTP service that takes registrations: see [registrar.md](registrar.md)."),
            .section("log", \.log, Log.keys, "What is printed on standard error."),
        ]
    }

    /// The key table without the types of the values.
    static var shape: [KeyShape] {
        let defaults = Configuration()
        return keys.map { $0.shape(defaults) }
    }
}

extension Configuration.Intake {
    static var keys: [ConfigurationKey<Self>] {
        [
            .value(
                "allowKindWide", \.allowKindWide, .flag,
                "Whether an event without a subject, and with kinds or `all`, sends a push to every "
                    + "control and widget of those kinds, or of the app; if false, such an event "
                    + "becomes a dead letter."),
            .value(
                "allowInstallations", \.allowInstallations, .flag,
                "Whether an event may name an installation instead of a subject, and reaches all its "
                    + "tokens; if false, such an event becomes a dead letter. The index then takes some "
                    + "60 bytes more for each installation and 20 for each of its tokens."),
            .value(
                "recordBytesMax", \.recordBytesMax, .bytes(1 << 10...64 << 20),
                "An event record with a larger value becomes a dead letter and is not read."
            ).live,
            .optional(
                "lastRecordFile", \.lastRecordFile, .file,
                "Notes which event record is being read, so that a worker that crashed on one names "
                    + "it at its next start. Each worker needs a file of its own, in a folder that "
                    + "outlives the process: in Kubernetes an `emptyDir`."),
        ]
    }
}

extension Configuration.Index {
    static var keys: [ConfigurationKey<Self>] {
        [
            .value(
                "registrationGrace", \.registrationGrace, .duration(.zero ... .seconds(60)),
                "An event also goes to tokens whose registration is read within this time after "
                    + "it. Each rebalance and each stop waits for it."),
            .optional(
                "snapshotDirectory", \.snapshotDirectory, .file,
                "A folder for a copy of the index, which a worker writes when it stops and begins "
                    + "with when it starts, so that it need not read all registrations again: see "
                    + "docs/snapshots.md. The file holds push tokens."),
            .value(
                "snapshotEvery", \.snapshotEvery, .duration(.seconds(10) ... .seconds(86_400)),
                "How often `lamplighter index keep` writes the copy, if anything has changed."),
        ]
    }
}

extension Configuration.Planning {
    static var keys: [ConfigurationKey<Self>] {
        let lives: ClosedRange<Duration> = .seconds(1) ... .seconds(30 * 86_400)
        return [
            .value(
                "ttl", \.ttl, .duration(lives),
                "How long a push without a payload is worth sending, unless its event or binding "
                    + "says. Counted from the later of the event's and the record's time."
            ).live,
            .value(
                "payloadTTL", \.payloadTTL, .duration(lives),
                "The same for a push with a payload."
            ).live,
            .value(
                "splitAbove", \.splitAbove, .integer(1000...1_000_000_000),
                "An event of more tokens is written again as up to 16 shards, so that the whole "
                    + "fleet sends it: to the first topic by name of `kafka.events` that is "
                    + "decoded as `json` without a `subject`. Without such a topic, or the right "
                    + "to write to it, the worker that read the event sends it alone."
            ).live,
            .value(
                "spread", \.spread, .duration(.zero ... .seconds(600)),
                "The pushes of an event of more than `spreadAbove` tokens go evenly over this "
                    + "time, so that their devices do not come back all at once; `0s` sends them as "
                    + "fast as APNs takes them. Its offset is held so long: see docs/delivery.md."
            ).live,
            .value(
                "spreadAbove", \.spreadAbove, .integer(100...1_000_000_000),
                "The most tokens of an event that `spread` leaves alone."
            ).live,
            .optional(
                "fanOutMax", \.fanOutMax, .integer(1...1_000_000_000),
                "An event of more tokens is withheld as a dead letter until `lamplighter "
                    + "dead-letters redrive` releases it; without a value none is. See "
                    + "docs/restrictions.md."
            ).live,
            .section(
                "minimumGap", \.minimumGap, MinimumGaps.keys,
                "How far apart the pushes to one token are."),
            .section(
                "budget", \.budget, PushBudgets.keys,
                "How many pushes one token should be sent a day."),
            .value(
                "restrictions", \.restrictions, .list(of: .restriction, countMax: 1000),
                "What is paused, dropped or limited, in words such as "
                    + "`pause app=com.example.Home`, `drop topic=orders` and `limit class=widget "
                    + "rate=500/s`, beside what `lamplighter pause` and the like ask for; see "
                    + "docs/restrictions.md."
            ).live,
            .section(
                "wire", \.wire, WireRules.keys, "Headers of each push type."),
        ]
    }
}

extension WireRules {
    static var keys: [ConfigurationKey<Self>] {
        PushType.builtInTypes.map { type in
            .section(
                type.name, \.[type], WireRule.keys,
                "Headers of a push of type `\(type.name)`.")
        }
    }
}

extension WireRule {
    static var keys: [ConfigurationKey<Self>] {
        [
            .value(
                "priority", \.priority,
                .choice([("10", 10), ("5", 5), ("1", 1), ("none", nil)]),
                "`apns-priority`, unless the event says: 10 at once, 5 to spare power, 1 never to "
                    + "wake the device; `none` leaves the header out, which Apple reads as 10."
            ).live,
            .value(
                "expiration", \.expiration,
                .choice([
                    ("immediate", .immediate), ("deadline", .deadline), ("none", .none),
                ]),
                "`apns-expiration`, unless the event says: `immediate` is 0, never stored; "
                    + "`deadline` is now and the rest of its life, at most an hour; `none` leaves "
                    + "the header out, and Apple may store it for 30 days."
            ).live,
        ]
    }
}

extension Configuration.DeadLetters {
    static var keys: [ConfigurationKey<Self>] {
        [
            .value(
                "tokensMax", \.tokensMax, .integer(1...500),
                "Failing tokens in one dead letter; a larger fan-out writes several."),
            .value(
                "eventBytesMax", \.eventBytesMax, .bytes(0...512 << 10),
                "An event of up to this size is copied into its dead letter; of a larger one the "
                    + "coordinates are kept."
            ).live,
            .value(
                "repeatAfter", \.repeatAfter, .duration(.zero ... .seconds(24 * 3600)),
                "A failure of which a dead letter has said the same of its token within this time, "
                    + "without a payload, is counted; one letter gives their number at its end. "
                    + "`0s` writes a letter for each."
            ).live,
        ]
    }
}

extension Configuration.Log {
    static var keys: [ConfigurationKey<Self>] {
        [
            .value("level", \.level, .choice, "The least severe level that is printed.").live,
            .value(
                "format", \.format, .choice,
                "`json`: one object per line; `text`: for people at a terminal."
            ).live,
        ]
    }
}
