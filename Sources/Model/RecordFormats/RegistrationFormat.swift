// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel
internal import Simdjson

// The registrations topic's records: what one handler of one installation shows.

extension RecordFormat {
    package static var registration: RecordFormat {
        RecordFormat(
            "registration", title: "Registration",
            """
            What one handler of one installation shows: the value of a record of the registrations \
            topic, whose key is `environment/app/installation/handler`. It replaces the one before \
            it; a null value removes it. Members that repeat a part of the key must agree with it. \
            Its partition is that of its key by `murmur2_random`, which many clients must be told: \
            [kafka.md](kafka.md#partitioner).
            """, fields: RegistrationField.self, example: exampleRegistration)
    }
}

package enum RegistrationField: UInt8, RecordField {
    case v, environment, app, installation, handler, sequence, registeredAt, attestedKey, targets
    package static let table = NameTable<Self>()

    package var row: FieldRow {
        switch self {
        case .v: .version
        case .environment:
            .optional(
                "environment", .environment,
                "Apple's entitlement word; `sandbox` is read as `development`.")
        case .app: .optional("app", .keyPart, "Bundle identifier.")
        case .installation: .optional("installation", .keyPart, "One app on one device.")
        case .handler:
            .optional("handler", .keyPart, "The push handler type that reports the targets.")
        case .sequence:
            .optional(
                "sequence", .any,
                """
                The client's count of snapshots, an integer. The registrar refuses stale ones; \
                readers ignore it: the last record wins.
                """)
        case .registeredAt:
            .optional(
                "registeredAt", .instant,
                """
                The registrar's clock; the record's timestamp if absent, or if it is more than an hour \
                after that. Suppressions compare it with itself.
                """)
        case .attestedKey:
            .optional(
                "attestedKey", .any,
                """
                Of the handler `default.attest`, which has no targets: the key of App Attest that the                 installation is for, until the millisecond that its sequence says. Only the registrar reads it.
                """)
        case .targets:
            .required(
                "targets", .array(.object(TargetField.rows)),
                """
                All that the handler knows; empty when none is left. At most \
                \(RecordLimits.registrationRowsMax) subjects.
                """)
        }
    }
}

package enum TargetField: UInt8, RecordField {
    case tokenClass, token, onChange, pushToStart, shows
    package static let table = NameTable<Self>()

    package var row: FieldRow {
        switch self {
        case .tokenClass:
            .required(
                "class", .openWord,
                """
                One of \(TokenClass.words.joined(separator: ", ")); a target of another class is \
                left out and counted.
                """)
        case .token:
            .optional(
                "token", .targetToken,
                """
                Hexadecimal, but of a channel its ID in base64, as Apple gives it; absent for a \
                control that has none yet.
                """)
        case .onChange:
            .optional(
                "onChange", .openWord,
                """
                Of a device `background`: a plain event sends it a background push. Of a location \
                token `location`: a plain event asks where the device is. A target with another \
                word is left out and counted.
                """)
        case .pushToStart:
            .optional(
                "pushToStart", .bool,
                """
                Of a Live Activity: whether this is the token that starts one. Events that start an \
                activity go to such tokens, all others to those of activities that run.
                """)
        case .shows: .optional("shows", .array(.object(ShowField.rows)), "What it shows.")
        }
    }
}

package enum ShowField: UInt8, RecordField {
    case kind, subjects
    package static let table = NameTable<Self>()

    package var row: FieldRow {
        switch self {
        case .kind:
            .optional("kind", .text(RecordLimits.kindBytes), "The control's or widget's kind.")
        case .subjects:
            .optional(
                "subjects", .array(.text(RecordLimits.subjectBytes)), "The subjects of this kind.")
        }
    }
}

// MARK: Decoder

/// What a record of the registrations topic does to its key.
package enum RegistrationChange: Sendable, Equatable {
    /// The key's rows are exactly those of the registration.
    case replaced
    /// The key has no rows any more; only `key`, `environment` and `app` are set.
    case removed
}

/// Reads records of the registrations topic into a `Registration` that is reused: a start reads all
/// of them, at a million rows a second.
package struct RegistrationDecoder: ~Copyable {
    private let routes: RouteDirectory
    private let rowsMax: Int
    private var parser: JSONParser
    private var token = [UInt8](repeating: 0, count: RecordLimits.tokenBytesMax)

    /// Targets left out because their `class` or `onChange` is of a later release, since the
    /// decoder was made.
    package private(set) var skippedTargets: UInt64 = 0

    /// - Parameters:
    ///   - rowsMax: how many rows one snapshot may have.
    ///   - recordBytesMax: the largest value.
    package init(
        routing: RoutingTable, rowsMax: Int = RecordLimits.registrationRowsMax,
        recordBytesMax: Int = 4 << 20
    ) {
        precondition(rowsMax > 0, "a registration may have at least one row")
        routes = RouteDirectory(routing)
        self.rowsMax = rowsMax
        parser = JSONParser(bytesMax: recordBytesMax)
    }

    /// Reads one record. When it throws, the content of `registration` is undefined.
    /// - Throws: also `UnreadableRecord.leftOut`.
    package mutating func decode(
        key: UnsafeRawBufferPointer?, value: UnsafeRawBufferPointer?, timestamp: WallTime,
        into registration: inout Registration
    ) throws(UnreadableRecord) -> RegistrationChange {
        registration.clear()
        if value == nil, ProbeRecord.hasKey(key) { throw UnreadableRecord.leftOut }
        let parts = try RecordKey.registrationParts(key)
        registration.environment = parts.environment
        registration.app = try routes.app(named: parts.app)
        try routes.requireServed(registration.app, parts.environment)
        registration.key.append(contentsOf: parts.environment.name.utf8)
        registration.key.append(contentsOf: parts.afterEnvironment)
        registration.registeredAt = timestamp

        guard let value else { return .removed }
        guard value.count > 0 else {
            throw UnreadableRecord(
                .emptyValue, "zero length; only a tombstone removes a registration")
        }
        var version: JSONValue?
        var targets: JSONValue?
        for (name, value) in try parser.object(value) where !value.isNull {
            switch RegistrationField.table.find(name) {
            case .v: version = value
            case .environment: try Self.check(value, parts.environment)
            case .app: try Self.check(.app, value, parts.app)
            case .installation: try Self.check(.installation, value, parts.installation)
            case .handler: try Self.check(.handler, value, parts.handler)
            case .registeredAt:
                registration.registeredAt = RecordMoment.registeredAt(
                    try value.instant(RegistrationField.registeredAt), writtenAt: timestamp,
                    .ofRegistration)
            case .targets: targets = value
            case .sequence, .attestedKey, nil: break
            }
        }
        guard let version else { throw .missing("v", "write 1") }
        try version.checkVersion()
        guard let targets else {
            throw .missing("targets", "an empty array says that none is left")
        }
        for target in try targets.elements(RegistrationField.targets) {
            try read(target, into: &registration)
        }
        return .replaced
    }

    // MARK: The key

    private static func check(
        _ value: JSONValue, _ environment: PushEnvironment
    ) throws(UnreadableRecord) {
        guard try value.environment(RegistrationField.environment) == environment else {
            throw UnreadableRecord(.keyMismatch, "environment is not that of the key")
        }
    }

    private static func check(
        _ field: RegistrationField, _ value: JSONValue, _ part: UnsafeRawBufferPointer
    ) throws(UnreadableRecord) {
        guard try value.text(field, bytes: RecordLimits.keyPartBytes).equals(part) else {
            throw UnreadableRecord(.keyMismatch, "\(field.name) is not that of the key")
        }
    }

    // MARK: Targets

    private mutating func read(
        _ target: JSONValue, into registration: inout Registration
    ) throws(UnreadableRecord) {
        guard let members = target.object else { throw .field("targets", "an array of objects") }
        var word: JSONValue?
        var token: JSONValue?
        var onChange: JSONValue?
        var pushToStart: JSONValue?
        var shows: JSONValue?
        for (name, value) in members where !value.isNull {
            switch TargetField.table.find(name) {
            case .tokenClass: word = value
            case .token: token = value
            case .onChange: onChange = value
            case .pushToStart: pushToStart = value
            case .shows: shows = value
            case nil: break
            }
        }
        guard let word else { throw .missing("class", "what kind of thing owns the token") }
        guard let text = word.string else { throw .field("class", "a string") }
        guard let tokenClass = TokenClass(text),
            let hearsChanges = try Self.hearsChanges(
                tokenClass, onChange, isPushToStart: try Self.flag(pushToStart))
        else {
            skippedTargets += 1
            return
        }
        // The system has not given this control a token yet.
        guard let token else { return }
        var row = Registration.Row(
            tokenClass: tokenClass, hearsChanges: hearsChanges,
            token: tokenClass == .channel
                ? try append(channel: token, to: &registration)
                : try append(token: token, to: &registration),
            kind: .empty, subject: .empty)
        try append(shows, &row, to: &registration)
    }

    /// See `Registration.Row.hearsChanges`; nil for a word of a later release.
    private static func hearsChanges(
        _ tokenClass: TokenClass, _ onChange: JSONValue?, isPushToStart: Bool
    ) throws(UnreadableRecord) -> Bool? {
        if tokenClass == .liveActivity { return isPushToStart }
        guard let type = tokenClass.changeType else { return false }
        guard tokenClass.hearsChangesOnDemand else { return true }
        guard let onChange else { return false }
        guard let word = onChange.string else { throw .field("onChange", "a string") }
        return PushType(word) == type ? true : nil
    }

    private static func flag(_ pushToStart: JSONValue?) throws(UnreadableRecord) -> Bool {
        guard let pushToStart else { return false }
        guard let flag = pushToStart.bool else { throw .field("pushToStart", "true or false") }
        return flag
    }

    private mutating func append(
        token value: JSONValue, to registration: inout Registration
    ) throws(UnreadableRecord) -> Registration.Slice {
        let digits = try value.text(TargetField.token, bytes: 2...2 * RecordLimits.tokenBytesMax)
        assert(
            digits.count <= 2 * token.count,
            "a token's bytes, two digits each, fit into its memory")
        let count = token.withUnsafeMutableBufferPointer {
            Hexadecimal.decode(digits, to: $0.baseAddress!)
        }
        guard let count else { throw .field("token", "an even number of hexadecimal digits") }
        return token.withUnsafeBytes {
            registration.append(UnsafeRawBufferPointer(rebasing: $0[..<count]))
        }
    }

    /// Only base64 that gives the same text again is read, so that requests name the channel as its
    /// registration does.
    @inline(never)
    private func append(
        channel value: JSONValue, to registration: inout Registration
    ) throws(UnreadableRecord) -> Registration.Slice {
        let text = try value.text(
            TargetField.token, bytes: 4...Base64.digits(bytes: RecordLimits.tokenBytesMax))
        guard let channel = ChannelID(base64: text) else {
            throw .field("token", "of a channel its ID in base64, as Apple gives it")
        }
        return channel.bytes.withUnsafeBytes { registration.append($0) }
    }

    /// Appends a row for each subject, or one without a subject for a target or a kind that shows
    /// none.
    private func append(
        _ shows: JSONValue?, _ row: inout Registration.Row, to registration: inout Registration
    ) throws(UnreadableRecord) {
        guard let shows = try shows?.elements(TargetField.shows), !shows.isEmpty else {
            return try append(row, to: &registration)
        }
        for show in shows {
            guard let members = show.object else { throw .field("shows", "an array of objects") }
            var subjects: JSONArray?
            row.kind = .empty
            for (name, value) in members where !value.isNull {
                switch ShowField.table.find(name) {
                case .kind:
                    row.kind = registration.append(
                        try value.text(ShowField.kind, bytes: RecordLimits.kindBytes))
                case .subjects: subjects = try value.elements(ShowField.subjects)
                case nil: break
                }
            }
            row.subject = .empty
            guard let subjects, !subjects.isEmpty else {
                try append(row, to: &registration)
                continue
            }
            for subject in subjects {
                row.subject = registration.append(
                    try subject.text(ShowField.subjects, bytes: RecordLimits.subjectBytes))
                try append(row, to: &registration)
            }
        }
    }

    private func append(
        _ row: Registration.Row, to registration: inout Registration
    ) throws(UnreadableRecord) {
        guard registration.rows.count < rowsMax else {
            throw UnreadableRecord(
                .tooManyRows, "over \(rowsMax) subjects in one snapshot: split it by handler")
        }
        registration.rows.append(row)
    }
}

// MARK: Encoder

package enum RegistrationEncoder {
    package static func key(_ registration: RegistrationDraft) -> [UInt8] {
        RecordKey.registration(
            environment: registration.environment, app: registration.app,
            installation: registration.installation, handler: registration.handler)
    }

    /// - Parameter targets: as `targets(_:)` writes those of the registration, to be used instead.
    package static func value(
        _ registration: RegistrationDraft, targets: [UInt8]? = nil
    ) -> [UInt8] {
        JSONWriter.object(of: RegistrationField.self) { json in
            json.member(.v, RecordLimits.version)
            json.member(.environment, registration.environment.name)
            json.member(.app, registration.app)
            json.member(.installation, registration.installation)
            json.member(.handler, registration.handler)
            json.member(.sequence, registration.sequence)
            json.member(.registeredAt, registration.registeredAt)
            json.member(.attestedKey, registration.attestedKey)
            json.member(.targets, raw: targets ?? self.targets(registration.targets))
        }
    }

    /// The array of a registration's targets.
    package static func targets(_ targets: [RegistrationDraft.Target]) -> [UInt8] {
        JSONWriter.array(targets, of: TargetField.self) { write($0, to: &$1) }
    }

    private static func write(
        _ target: RegistrationDraft.Target, to json: inout ObjectWriter<TargetField>
    ) {
        json.member(.tokenClass, target.tokenClass.name)
        json.member(
            .token,
            target.token.map {
                target.tokenClass == .channel ? Base64.encode($0) : Hexadecimal.encode($0)
            })
        if target.hearsChanges, target.tokenClass.hearsChangesOnDemand {
            json.member(.onChange, target.tokenClass.changeType?.name)
        }
        json.member(
            .pushToStart, flag: target.hearsChanges && target.tokenClass == .liveActivity)
        json.member(.shows, array: target.shows, of: ShowField.self) { show, json in
            json.member(.kind, show.kind)
            json.member(.subjects, array: show.subjects)
        }
    }
}
