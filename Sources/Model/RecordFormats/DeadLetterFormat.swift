// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel
internal import Simdjson

// The dead-letters topic's records: `DeadLetter`. The key is the subject.

extension RecordFormat {
    package static var deadLetter: RecordFormat {
        RecordFormat(
            "dead-letter", title: "Dead letter",
            """
            What failed, for whom, and why: the value of a record of the dead-letters topic, whose \
            key is the subject. Written by the worker only. Bytes that are not UTF-8 are written as \
            base64 under the name with `Base64` appended.
            """, fields: DeadLetterField.self, example: exampleDeadLetter, isClosed: true)
    }
}

package enum DeadLetterField: UInt8, RecordField {
    case v, reason, message, status, attempts, source, payloadSource, firstAt, lastAt, app
    case eventID, traceparent, subject, subjectBase64, payloadOf, payloadOfBase64
    case installation, collapseID, failures, lastOffset, repeats, tokens, event, eventLeftOut
    package static let table = NameTable<Self>()

    package var row: FieldRow {
        switch self {
        case .v: .version
        case .reason:
            .required(
                "reason", .text(RecordLimits.letterTextBytes), "Apple's word, or the worker's own.")
        case .message:
            .optional(
                "message", .text(RecordLimits.letterTextBytes), "For people: cause and remedy.")
        case .status:
            .optional(
                "status", .integer(RecordLimits.statuses),
                "Of the last answer; absent when APNs was not asked.")
        case .attempts: .required("attempts", .integer(RecordLimits.attempts))
        case .source:
            .required(
                "source", .object(SourceField.rows),
                """
                The record that could not be read, or the oldest event that the pushes answer for.
                """)
        case .payloadSource:
            .optional(
                "payloadSource", .object(SourceField.rows),
                "The event whose payload this is, where it is not `source`.")
        case .firstAt: .required("firstAt", .instant, "When the event was first tried.")
        case .lastAt: .required("lastAt", .instant, "When it was given up.")
        case .app: .optional("app", .text(RecordLimits.letterTextBytes), "Bundle identifier.")
        case .eventID:
            .optional(
                "eventID", .text(RecordLimits.subjectBytes),
                """
                The `id` of the event at `source`, where it had one and is among the latest that the \
                worker has read.
                """)
        case .traceparent:
            .optional(
                "traceparent", .text(RecordLimits.traceparentBytes),
                "The W3C trace context that came with the same event.")
        case .subject:
            .optional("subject", .text(0...RecordLimits.subjectBytesMax), "What changed.")
        case .subjectBase64:
            .optional(
                "subjectBase64", .base64(bytesMax: RecordLimits.subjectBytesMax),
                "The same, where it is not UTF-8.")
        case .payloadOf:
            .optional(
                "payloadOf", .text(0...RecordLimits.subjectBytesMax),
                "The subject of the event whose payload this is, where it is not `subject`.")
        case .payloadOfBase64:
            .optional(
                "payloadOfBase64", .base64(bytesMax: RecordLimits.subjectBytesMax),
                "The same, where it is not UTF-8.")
        case .installation:
            .optional(
                "installation", .keyPart,
                "What the event whose payload this is names instead of a subject.")
        case .collapseID:
            .optional(
                "collapseID", .collapseID, "`apns-collapse-id` of the pushes, where they had one.")
        case .failures:
            .optional(
                "failures", .integer(RecordLimits.offsets),
                """
                The number of failures, in a letter that stands for many of one reason. Such a letter \
                is written when the topic could not be written to for long; it counts from `source` \
                on and names no tokens.
                """)
        case .lastOffset:
            .optional(
                "lastOffset", .integer(RecordLimits.offsets),
                """
                The offset of the last event of such a letter, in the partition of `source`.
                """)
        case .repeats:
            .optional(
                "repeats", .integer(RecordLimits.repeats),
                """
                The number of further failures of the one token, with this reason and without a \
                payload, that followed a letter within `deadLetters.repeatAfter`; the rest of the \
                letter is about the last of them, and `firstAt` about the first.
                """)
        case .tokens:
            .required(
                "tokens", .array(.object(LetterTargetField.rows), count: 0...DeadLetter.targetsMax),
                "Whom the pushes were for.")
        case .event:
            .optional(
                "event", .object(OriginalField.rows),
                """
                If small enough: for failed pushes their payload as `value` (absent for "look \
                again"), for an unreadable record the record itself.
                """)
        case .eventLeftOut:
            .optional(
                "eventLeftOut", .flag,
                """
                There was an `event`, and no room for it: it was too large, or too many letters \
                waited for the topic.
                """)
        }
    }
}

package enum LetterTargetField: UInt8, RecordField {
    case token, environment, apnsTopic
    package static let table = NameTable<Self>()

    package var row: FieldRow {
        switch self {
        case .token: .required("token", .token)
        case .environment: .required("environment", .environment)
        case .apnsTopic: .required("apnsTopic", .text(RecordLimits.apnsTopicBytes))
        }
    }
}

package enum OriginalField: UInt8, RecordField {
    case key, keyBase64, value, valueBase64, headers
    package static let table = NameTable<Self>()

    package var row: FieldRow {
        switch self {
        case .key: .optional("key", .text(RecordLimits.originalBytes))
        case .keyBase64: .optional("keyBase64", .base64(bytesMax: RecordLimits.originalBytesMax))
        case .value: .optional("value", .text(RecordLimits.originalBytes))
        case .valueBase64:
            .optional("valueBase64", .base64(bytesMax: RecordLimits.originalBytesMax))
        case .headers: .optional("headers", .array(.object(HeaderField.rows)))
        }
    }
}

package enum HeaderField: UInt8, RecordField {
    case name, value, valueBase64
    package static let table = NameTable<Self>()

    package var row: FieldRow {
        switch self {
        case .name: .required("name", .text(RecordLimits.originalBytes))
        case .value: .optional("value", .text(RecordLimits.originalBytes))
        case .valueBase64:
            .optional("valueBase64", .base64(bytesMax: RecordLimits.originalBytesMax))
        }
    }
}

// MARK: Decoder

/// Decodes values of the dead-letters topic. It is for commands: it allocates what it returns.
package struct DeadLetterDecoder: ~Copyable {
    private var parser: JSONParser

    package init() {
        // 500 of the longest tokens and an event of 512 KiB, each byte escaped as \u0000.
        parser = JSONParser(bytesMax: 8 << 20)
    }

    package mutating func letter(
        _ value: UnsafeRawBufferPointer?
    ) throws(UnreadableRecord) -> DeadLetter {
        guard let value, value.count > 0 else {
            throw UnreadableRecord(.emptyValue, "a dead letter has a value")
        }
        return try DeadLetter(MemberReader(try parser.object(value)))
    }

    /// The payload of a letter's pushes to tokens of a class; nil for pushes that say "look again".
    /// - Precondition: the letter names tokens, and its original was not left out.
    package mutating func payload(
        of letter: DeadLetter, for tokenClass: TokenClass
    ) throws(UnreadableRecord) -> EventPayload? {
        guard let body = letter.original?.value else { return nil }
        let parsed = body.withUnsafeBytes { bytes in
            Result { () throws(UnreadableRecord) in
                try EventPayload(json: try parser.object(bytes).value, for: tokenClass)
            }
        }
        return try parsed.get()
    }
}

extension DeadLetter {
    fileprivate init(_ fields: borrowing MemberReader<DeadLetterField>) throws(UnreadableRecord) {
        try fields.checkVersion(.v)
        self.init(
            reason: String(try fields.text(.reason, bytes: RecordLimits.letterTextBytes)),
            source: try Source(try fields.required(.source), in: DeadLetterField.source),
            firstAt: try fields.instant(.firstAt), lastAt: try fields.instant(.lastAt),
            attempts: Int(try fields.integer(.attempts, in: RecordLimits.attempts)),
            subject: try fields.bytes(
                .subject, base64: .subjectBase64, bytesMax: RecordLimits.subjectBytesMax) ?? [],
            targets: try Self.targets(try fields.required(.tokens)))
        payloadSubject =
            try fields.bytes(
                .payloadOf, base64: .payloadOfBase64,
                bytesMax: RecordLimits.subjectBytesMax) ?? []
        installation = try fields.optional(.installation).map {
            value throws(UnreadableRecord) in
            String(try value.keyPart(DeadLetterField.installation))
        }
        message = try fields.optionalText(.message, bytes: RecordLimits.letterTextBytes)
        status = try fields.optionalInteger(.status, in: RecordLimits.statuses).map(UInt16.init)
        if let value = fields.optional(.payloadSource) {
            payloadSource = try Source(value, in: DeadLetterField.payloadSource)
        }
        app = try fields.optionalText(.app, bytes: RecordLimits.letterTextBytes)
        correlation = Correlation(
            id: try fields.optionalText(.eventID, bytes: RecordLimits.subjectBytes),
            traceparent: try fields.optionalText(
                .traceparent, bytes: RecordLimits.traceparentBytes))
        if let value = fields.optional(.collapseID) {
            collapseID = try EventFields.collapseID(value)
        }
        failures = try fields.optionalInteger(.failures, in: RecordLimits.offsets).map(Int.init)
        lastOffset = try fields.optionalInteger(.lastOffset, in: RecordLimits.offsets)
        repeats = try fields.optionalInteger(.repeats, in: RecordLimits.repeats).map(Int.init)
        if let value = fields.optional(.event) {
            original = try Original(MemberReader(value, in: DeadLetterField.event))
        }
        if let value = fields.optional(.eventLeftOut) {
            guard value.bool == true else { throw .field("eventLeftOut", "true") }
            isOriginalLeftOut = true
        }
    }

    private static func targets(_ value: JSONValue) throws(UnreadableRecord) -> [Target] {
        var targets: [Target] = []
        for element in try value.elements(DeadLetterField.tokens) {
            guard targets.count < targetsMax else {
                throw .field("tokens", "an array of at most \(targetsMax) objects")
            }
            targets.append(
                try Target(MemberReader(element, in: DeadLetterField.tokens)))
        }
        return targets
    }
}

extension DeadLetter.Target {
    fileprivate init(_ fields: borrowing MemberReader<LetterTargetField>) throws(UnreadableRecord) {
        let digits = try fields.text(.token, bytes: 2...2 * RecordLimits.tokenBytesMax)
        guard let token = Hexadecimal.decode(String(digits)) else {
            throw .field("token", "hexadecimal of even length")
        }
        let apnsTopic = try fields.text(.apnsTopic, bytes: RecordLimits.apnsTopicBytes)
        self.init(
            token: token,
            environment: try fields.required(.environment)
                .environment(LetterTargetField.environment),
            apnsTopic: String(apnsTopic))
    }
}

extension DeadLetter.Original {
    fileprivate init(_ fields: borrowing MemberReader<OriginalField>) throws(UnreadableRecord) {
        let bytesMax = RecordLimits.originalBytesMax
        self.init(
            key: try fields.bytes(.key, base64: .keyBase64, bytesMax: bytesMax),
            value: try fields.bytes(.value, base64: .valueBase64, bytesMax: bytesMax))
        guard let headers = fields.optional(.headers) else { return }
        for element in try headers.elements(OriginalField.headers) {
            let header = try MemberReader<HeaderField>(element, in: OriginalField.headers)
            let name = try header.text(.name, bytes: RecordLimits.originalBytes)
            let value = try header.bytes(.value, base64: .valueBase64, bytesMax: bytesMax)
            self.headers.append((String(name), value ?? []))
        }
    }
}

// MARK: Encoder

package enum DeadLetterEncoder {
    /// - Parameter eventBytesMax: a larger original is left out; its coordinates say where it is.
    /// - Precondition: at most `DeadLetter.targetsMax` targets.
    package static func value(_ letter: DeadLetter, eventBytesMax: Int) -> [UInt8] {
        precondition(
            letter.targets.count <= DeadLetter.targetsMax,
            "a letter has at most targetsMax targets: larger ones are split")
        assert(letter.failures == nil || letter.targets.isEmpty, "a merged letter names no token")
        return JSONWriter.object(of: DeadLetterField.self) { json in
            json.member(.v, RecordLimits.version)
            json.member(.reason, letter.reason)
            json.member(.message, letter.message)
            json.member(.status, letter.status)
            json.member(.attempts, letter.attempts)
            json.member(.source, letter.source)
            json.member(.payloadSource, letter.payloadSource)
            json.member(.firstAt, letter.firstAt)
            json.member(.lastAt, letter.lastAt)
            json.member(.app, letter.app)
            json.member(.eventID, letter.correlation.id)
            json.member(.traceparent, letter.correlation.traceparent)
            json.member(
                .subject, bytes: letter.subject.isEmpty ? nil : letter.subject,
                base64: .subjectBase64)
            json.member(
                .payloadOf, bytes: letter.payloadSubject.isEmpty ? nil : letter.payloadSubject,
                base64: .payloadOfBase64)
            json.member(.installation, letter.installation)
            json.member(.collapseID, letter.collapseID)
            json.member(.failures, letter.failures)
            json.member(.lastOffset, letter.lastOffset)
            json.member(.repeats, letter.repeats)
            json.member(.tokens, array: letter.targets, of: LetterTargetField.self) {
                $1.member(.token, Hexadecimal.encode($0.token))
                $1.member(.environment, $0.environment.name)
                $1.member(.apnsTopic, $0.apnsTopic)
            }
            if let original = letter.original, original.size <= eventBytesMax {
                json.member(.event, of: OriginalField.self) { write(original, to: &$0) }
            } else {
                json.member(
                    .eventLeftOut, flag: letter.original != nil || letter.isOriginalLeftOut)
            }
        }
    }

    /// Writes key, value and headers, each as text where it is UTF-8, else as base64.
    private static func write(
        _ original: DeadLetter.Original, to json: inout ObjectWriter<OriginalField>
    ) {
        json.member(.key, bytes: original.key, base64: .keyBase64)
        json.member(.value, bytes: original.value, base64: .valueBase64)
        guard !original.headers.isEmpty else { return }
        json.member(.headers, array: original.headers, of: HeaderField.self) {
            $1.member(.name, $0.name)
            $1.member(.value, bytes: $0.value, base64: .valueBase64)
        }
    }
}
