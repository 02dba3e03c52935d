// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Testing

/// A word that this project once used in a sense of its own, and the field's word that replaces it.
struct RetiredWord: Sendable, CustomTestStringConvertible {
    let word: String
    /// An ICU regular expression that finds the word in prose and in identifiers.
    let pattern: String
    /// What to write instead; part of the failure's message.
    let instead: String
    /// Patterns of legitimate uses: a hit inside a match of one of these is ignored.
    var allowed: [String] = []
    /// The beginnings of paths in which the word is allowed.
    var allowedIn: [String] = []
    /// A text in which the pattern finds a hit; in `legitimate` all hits are allowed. Both test
    /// this entry.
    let example: String
    var legitimate: String = ""

    var testDescription: String { word }

    /// The retired words. An entry retires a word; deleting it allows the word again.
    static let all = [
        RetiredWord(
            word: "verdict", pattern: "(?i)verdict",
            instead: "suppression (why a dead token is sent nothing), or result (of a check)",
            example: "writeVerdict"),
        RetiredWord(
            word: "push book", pattern: "(?i)push ?book",
            instead: "PipelineState (what the parts of the pipeline share)",
            example: "PushBook"),
        RetiredWord(
            word: "HTTP question", pattern: "(?i)HTTP ?question",
            instead: "HTTPRequest",
            example: "HTTPQuestion"),
        RetiredWord(
            word: "controls topic",
            pattern: "(?i)topics?[. ]controls|controls[ -]topic|lamplighter\\.controls",
            instead: "restrictions (the topic; controls are what is pushed)",
            example: "kafka.topics.controls"),
        RetiredWord(
            word: "foresee", pattern: "(?i)(?<!un)fore(see|saw)",
            instead: "prefetch",
            example: "keys are foreseen", legitimate: "an unforeseen end"),
        RetiredWord(
            word: "frontier", pattern: "(?i)frontier",
            instead: "committable offset",
            // The end of an arena's used part.
            allowedIn: ["Sources/Bindings/FlatMemory"],
            example: "storedFrontier"),
        RetiredWord(
            word: "settle", pattern: "(?i)settl(e|ing)",
            instead: "registration grace period (of a new token), or is over, has ended",
            example: "pinUnsettled", legitimate: "SETTINGS"),
        RetiredWord(
            word: "welcome", pattern: "(?i)welcom(e|ing)",
            instead: "authenticated (a connection whose provider token APNs has accepted)",
            example: "wasWelcomed"),
        RetiredWord(
            word: "lane", pattern: "(?<![A-Za-z])lanes?(?![a-z])|Lanes?(?![a-z])",
            instead: "route (one environment and APNs topic)",
            example: "laneCount", legitimate: "a plane, and an explanation"),
        RetiredWord(
            word: "null", pattern: "(?<![A-Za-z])nulls?(?![a-z])|Nulls?(?![a-z])",
            instead: "tombstone (a record whose value is null)",
            allowed: [
                "/dev/null", "nullDevice", "NSNull", "is(Not)?Null", "(?i)nonnull", "null_?ptr",
                // Avro's and Protobuf's names for it.
                "NullValue", "NULL_VALUE", "null_value",
                // An option of GNU tar's.
                "--null",
                // JSON's and YAML's literal, in documents and in the code that reads them.
                #"[:,\[] ?null\b"#, #"(?m)^ *null,?$"#, #"["`]null["`]"#, "\"(0=null|null=0)\"",
                #"\.null\b"#, #"\bcase null\b"#,
                #"(?i)json('s)? null"#, #"(?i)(is|be|as|=|or|nor) null\b"#,
                // Kafka's word for the value of a tombstone.
                #"\bnull (value|or empty)"#, #"\bvalue of null\b"#, #"\bnull and empty\b"#,
                // A pointer in C.
                #"\bnull pointer"#,
            ],
            allowedIn: ["Sources/Bindings/Simdjson", "Tests/BindingsTests/Simdjson"],
            example: "hidden by a null that spoke of an older one",
            legitimate: #"{"alert":null}, 2>/dev/null, a null value, JSON's null"#),
        RetiredWord(
            word: "gate", pattern: "(?<![A-Za-z])gates?(?![a-z])|Gates?(?![a-z])",
            instead: "circuit breaker, which is closed, open or half-open",
            allowed: [#"com\.example\.gate"#, #""gate-\d"#],
            // The stand-in for a broker that asks for SASL.
            allowedIn: ["Tests/DriversTests/Kafka"],
            example: "behind a shut gate, shutGates",
            legitimate: "an aggregate, a gateway, com.example.gate"),
        RetiredWord(
            word: "dirty", pattern: "(?i)dirty",
            instead: "follow-up (a push to be sent once more after the one in flight)",
            allowed: ["-dirty"],
            example: "push.isDirty", legitimate: "a commit ends in -dirty"),
        RetiredWord(
            word: "trailing",
            pattern: "(?<![A-Za-z])[Tt]rail(s|ed|ing)?(?![a-z])|Trail(s|ed|ing)(?![a-z])",
            instead: "follow-up (a push to be sent once more after the one in flight)",
            allowed: [
                "(?i)trailing([ _](zero|comma|slash|space|white|newline|closure|byte|garbage)|ZeroBitCount)"
            ],
            example: "absorbTrailing and what trails", legitimate: "trailing zero bytes, trailers"),
        RetiredWord(
            word: "walk",
            pattern: """
                (?<![A-Za-z])[Ww]alk(s|ed|ing)?(?![a-z])\
                |(?<=[a-z])Walk(s|ed|ing)?(?![a-z])
                """,
            instead: "fan-out (making the pushes of an event), or go through (a list)",
            allowed: [#"os\.walk\("#, #"\bwalk\((tree|function)\)"#],
            example: "areWalking", legitimate: "os.walk(folder), a tree walker"),
        RetiredWord(
            word: "holder",
            pattern: """
                HolderID|holderCount|holderRows|rowsByHolder\
                |[Mm]akes? a holder|(is|passes) a holder
                """,
            instead: "claim (it keeps an event's offset from being committed)",
            example: "holderCount", legitimate: "a key's holder"),
        RetiredWord(
            word: "hold of an offset",
            pattern: #"forEachHold|\bholds?: \[?OffsetClaim|\bhold(One|Row)\b"#,
            instead: "claim; hold is of partitions, which are read or held",
            example: "holds: [OffsetClaim]", legitimate: "holdMax"),
        RetiredWord(
            word: "pin of an offset", pattern: #"pinWithinGrace|\bpins\.(head|tail)"#,
            instead: "claimWithinGrace, or late claim",
            example: "pinWithinGrace", legitimate: "pinned packages"),
        RetiredWord(
            word: "pace",
            pattern: """
                (?<![A-Za-z_])([Uu]n)?[Pp]ac(e|ed|ing)(?![A-Za-z_])\
                |(?<=[a-z])(Unp|P)ac(e|ed|ing)(?![a-z])
                """,
            instead: "minimum gap (between pushes to one token), spread (of a fan-out), or rate",
            example: "pushesPaced, unpaced, a pace", legitimate: "white space"),
        RetiredWord(
            word: "store of an offset",
            pattern: "StoredPosition|[iI]sStoreDue|storeInterval|storeOffsets",
            instead: "commit; store is rd_kafka_offsets_store alone",
            example: "StoredPosition", legitimate: "rd_kafka_offsets_store"),
        RetiredWord(
            word: "desk", pattern: "(?<![A-Za-z])[Dd]esks?(?![a-z])|(?<=[a-z])Desks?(?![a-z])",
            instead: "what the type does, such as RegistrationArbiter, DeliveryCore",
            example: "DeliveryDesk", legitimate: "desktop"),
        RetiredWord(
            word: "place in a table",
            pattern: """
                ConnectionPlaces|SlotPlace|PayloadPlace|WalkPlace|freePlaces|openPlace\
                |placesNeeded|makePlaces|placesPerBlock
                """,
            instead: "slot, connection or position",
            example: "SlotPlace", legitimate: "in place of"),
    ]
}
