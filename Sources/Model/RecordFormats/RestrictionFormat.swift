// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel
internal import Simdjson

// The restrictions topic's records: `Restriction`. Keys are `RecordKey.restriction`.

extension RecordFormat {
    package static var restriction: RecordFormat {
        RecordFormat(
            "restriction", title: "Restriction",
            """
            What an operator has paused, dropped or limited: the value of a record of the restrictions \
            topic. The key says of what: `app/NAME`, `class/CLASS`, `app/NAME/class/CLASS`, \
            `app/NAME/subject/SUBJECT`, `topic/NAME` or `app/NAME/rollout`. A null value lifts it. Only \
            `drop` is for subjects, `limit` is for apps and classes, and `rollout` is what is possible of \
            an app's rollout.
            """, fields: RestrictionField.self, example: exampleRestriction)
    }
}

package enum RestrictionField: UInt8, RecordField {
    case v, action, perSecond, steps, classes, tokens, until, by, reason, at
    package static let table = NameTable<Self>()

    package var row: FieldRow {
        switch self {
        case .v: .version
        case .action: .required("action", .oneOf(["pause", "drop", "limit", "rollout"]))
        case .perSecond:
            .optional(
                "perSecond", .integer(RecordLimits.pushesPerSecond),
                "The most pushes a second, of all workers together; required by `limit`.")
        case .steps:
            .optional(
                "steps",
                .array(.object(RolloutStepField.rows), count: 1...Rollout.stepsMax),
                "How many of a hundred tokens are sent to, and from when on, oldest first; the others are "
                    + "left to another sender. The first counts for events of before, too. Required by "
                    + "`rollout`.")
        case .classes:
            .optional(
                "classes", .array(.oneOf(TokenClass.words), count: 1...Int.max),
                "The classes of the tokens that another sender has as well; required by `rollout`.")
        case .tokens:
            .optional(
                "tokens",
                .array(.tokenID, count: 1...RecordLimits.rolloutTokensMax),
                "Tokens that are sent to in any case: the first 16 hexadecimal digits of each one's "
                    + "SHA-256. Of a `rollout`.")
        case .until: .optional("until", .instant, "When it ends by itself; not of a `rollout`.")
        case .by:
            .required(
                "by", .text(RecordLimits.operatorBytes),
                "Who asked for it; not `planning.restrictions`, the name of those of the "
                    + "configuration.")
        case .reason: .optional("reason", .text(RecordLimits.operatorBytes), "Why.")
        case .at: .required("at", .instant, "When it was asked for.")
        }
    }
}

package enum RolloutStepField: UInt8, RecordField {
    case percent, from
    package static let table = NameTable<Self>()

    package var row: FieldRow {
        switch self {
        case .percent: .required("percent", .integer(RecordLimits.percent))
        case .from: .required("from", .instant)
        }
    }
}

extension RecordLimits {
    package static var pushesPerSecond: ClosedRange<Int64> { 1...1_000_000 }
    package static var percent: ClosedRange<Int64> { 0...100 }
    package static var rolloutTokensMax: Int { 100 }
    /// What an operator writes in a restriction.
    package static var operatorBytes: ClosedRange<Int> { 1...256 }
}

/// Reads records of the restrictions topic.
package struct RestrictionDecoder: ~Copyable {
    private var parser = JSONParser(bytesMax: 16 << 10)

    package init() {}

    /// - Returns: the scope, and the restriction; nil where it is lifted.
    /// - Throws: also `UnreadableRecord.leftOut`.
    package mutating func decode(
        key: UnsafeRawBufferPointer?, value: UnsafeRawBufferPointer?
    ) throws(UnreadableRecord) -> (Restriction.Scope, Restriction?) {
        if value == nil, ProbeRecord.hasKey(key) { throw UnreadableRecord.leftOut }
        guard let scope = key.flatMap({ RecordKey.restrictionScope($0) }) else {
            throw UnreadableRecord(
                .invalidKey,
                "the key must be app/NAME, class/CLASS, app/NAME/class/CLASS, "
                    + "app/NAME/subject/SUBJECT, topic/NAME or app/NAME/rollout")
        }
        guard let value else { return (scope, nil) }
        guard value.count > 0 else {
            throw UnreadableRecord(.emptyValue, "zero length; only a tombstone lifts a restriction")
        }
        let restriction = try Restriction(MemberReader(try parser.object(value)))
        guard Restriction.isPossible(restriction.action, for: scope) else {
            throw .field("action", "one that there is for such a key")
        }
        return (scope, restriction)
    }
}

extension Restriction {
    fileprivate init(
        _ fields: borrowing MemberReader<RestrictionField>
    ) throws(UnreadableRecord) {
        try fields.checkVersion(.v)
        let word = try fields.required(.action).string
        let action: Action
        if word?.equals("pause") == true {
            action = .pause
        } else if word?.equals("drop") == true {
            action = .drop
        } else if word?.equals("limit") == true {
            let rate = try fields.integer(.perSecond, in: RecordLimits.pushesPerSecond)
            action = .limit(perSecond: Int(rate))
        } else if word?.equals("rollout") == true {
            action = .rollout(try Rollout(fields))
            guard fields.optional(.until) == nil else {
                throw .field(
                    "until", "absent: a rollout that ended by itself would send to all tokens")
            }
        } else {
            throw .field("action", "pause, drop, limit or rollout")
        }
        self.init(
            action, by: String(try fields.text(.by, bytes: RecordLimits.operatorBytes)),
            at: try fields.instant(.at))
        until = try fields.optionalInstant(.until)
        reason = try fields.optionalText(.reason, bytes: RecordLimits.operatorBytes)
        // Or a record would pass for the configuration's: with no alert, and no command that lifts it.
        guard !isConfigured else { throw .field("by", "another name than \(by)") }
    }
}

extension Rollout {
    fileprivate init(
        _ fields: borrowing MemberReader<RestrictionField>
    ) throws(UnreadableRecord) {
        var steps: [Step] = []
        for element in try fields.required(.steps).elements(RestrictionField.steps) {
            let step = try MemberReader<RolloutStepField>(element, in: RestrictionField.steps)
            steps.append(
                Step(
                    percent: Int(try step.integer(.percent, in: RecordLimits.percent)),
                    from: try step.instant(.from)))
            guard steps.count <= Self.stepsMax else { break }
        }
        guard (1...Self.stepsMax).contains(steps.count),
            zip(steps, steps.dropFirst()).allSatisfy({ $0.from <= $1.from })
        else { throw .field("steps", "1 to \(Self.stepsMax), oldest first") }
        var classes: TokenClassSet = []
        for element in try fields.required(.classes).elements(RestrictionField.classes) {
            guard let tokenClass = element.string.flatMap({ TokenClass($0) }) else {
                throw .field(
                    "classes", "one or more of \(TokenClass.words.joined(separator: ", "))")
            }
            classes.insert(TokenClassSet(tokenClass))
        }
        guard !classes.isEmpty else {
            throw .field("classes", "one or more of \(TokenClass.words.joined(separator: ", "))")
        }
        self.init(steps, of: classes)
        guard let value = fields.optional(.tokens) else { return }
        for element in try value.elements(RestrictionField.tokens) {
            guard let text = element.string.map({ String(decoding: $0, as: UTF8.self) }),
                text.utf8.count == 16, let bytes = Hexadecimal.decode(text),
                tokens.count < RecordLimits.rolloutTokensMax
            else { throw Self.badTokens }
            tokens.append(bytes.reduce(0) { $0 << 8 | UInt64($1) })
        }
        guard !tokens.isEmpty else { throw Self.badTokens }
    }

    private static var badTokens: UnreadableRecord {
        .field("tokens", "1 to \(RecordLimits.rolloutTokensMax) strings of 16 hexadecimal digits")
    }

    fileprivate var tokenIDs: [String] {
        tokens.map { token in
            Hexadecimal.encode(withUnsafeBytes(of: token.bigEndian) { Array($0) })
        }
    }
}

package enum RestrictionEncoder {
    package static func value(_ restriction: Restriction) -> [UInt8] {
        JSONWriter.object(of: RestrictionField.self) { json in
            json.member(.v, RecordLimits.version)
            json.member(.action, restriction.action.word)
            if case .limit(let rate) = restriction.action { json.member(.perSecond, Int64(rate)) }
            if let rollout = restriction.action.rollout {
                json.member(.steps, array: rollout.steps, of: RolloutStepField.self) { step, json in
                    json.member(.percent, Int64(step.percent))
                    json.member(.from, step.from)
                }
                json.member(
                    .classes,
                    array: TokenClass.allCases.filter(rollout.classes.contains).map(\.name))
                json.member(.tokens, array: rollout.tokenIDs)
            }
            json.member(.until, restriction.until)
            json.member(.by, restriction.by)
            json.member(.reason, restriction.reason)
            json.member(.at, restriction.at)
        }
    }
}

extension RecordKey {
    package static func restriction(_ scope: Restriction.Scope) -> [UInt8] {
        switch scope {
        case .pushes(let app?, nil): Array("app/\(app)".utf8)
        case .pushes(nil, let tokenClass?): Array("class/\(tokenClass.name)".utf8)
        case .pushes(let app?, let tokenClass?):
            Array("app/\(app)/class/\(tokenClass.name)".utf8)
        case .pushes(nil, nil):
            preconditionFailure("a restriction is always of something in particular")
        case .subject(let subject, let app): Array("app/\(app)/subject/".utf8) + subject
        case .topic(let topic): Array("topic/\(topic)".utf8)
        case .rollout(let app): Array("app/\(app)/rollout".utf8)
        }
    }

    static func restrictionScope(_ key: UnsafeRawBufferPointer) -> Restriction.Scope? {
        // A subject is the last part, and may have slashes.
        let parts = key.split(
            separator: UInt8(ascii: "/"), maxSplits: 3, omittingEmptySubsequences: false)
        guard parts.count > 1, let name = text(parts[1]), isPart(name) || parts.count == 2 else {
            return nil
        }
        let word = text(parts[0])
        switch (word, parts.count) {
        case ("app", 2): return isPart(name) ? .pushes(app: name, tokenClass: nil) : nil
        case ("class", 2):
            return TokenClass(name: name).map { .pushes(app: nil, tokenClass: $0) }
        case ("topic", 2):
            return RecordLimits.kafkaTopicBytes.contains(name.utf8.count) ? .topic(name) : nil
        case ("app", 3) where text(parts[2]) == "rollout": return .rollout(app: name)
        case ("app", 4) where text(parts[2]) == "class":
            return text(parts[3]).flatMap(TokenClass.init(name:)).map {
                .pushes(app: name, tokenClass: $0)
            }
        case ("app", 4) where text(parts[2]) == "subject":
            let subject = Array(parts[3])
            return RecordLimits.subjectBytes.contains(subject.count)
                ? .subject(subject, app: name) : nil
        default: return nil
        }
    }

    private static func text(_ bytes: Slice<UnsafeRawBufferPointer>) -> String? {
        String(validating: bytes, as: UTF8.self)
    }
}
