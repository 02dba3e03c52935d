// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel
internal import Simdjson

/// What a record of the registrations topic does to its key.
package enum RegistrationChange: Sendable, Equatable {
    /// The key's rows are exactly those of the registration.
    case replaced
    /// The key has no rows any more; only `key`, `environment` and `app` are set.
    case removed
}

package enum RegistrationField: String, CaseIterable, Sendable {
    /// `sequence` is the registrar's business: readers let the log's order decide.
    case v, environment, app, installation, handler, sequence, registeredAt, targets
    static let table = NameTable<Self>()
}

package enum TargetField: String, CaseIterable, Sendable {
    case tokenClass = "class"
    case token, onChange, shows
    static let table = NameTable<Self>()
}

package enum ShowField: String, CaseIterable, Sendable {
    case kind, subjects
    static let table = NameTable<Self>()
}

/// Reads records of the registrations topic into a `Registration` that is used again and again: a
/// start reads all of them, at a million rows a second.
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
    package init(routing: RoutingTable, rowsMax: Int = 10_000, recordBytesMax: Int = 4 << 20) {
        routes = RouteDirectory(routing)
        self.rowsMax = rowsMax
        parser = JSONParser(bytesMax: recordBytesMax)
    }

    /// Reads one record. When it throws, what is in `registration` means nothing.
    package mutating func decode(
        key: UnsafeRawBufferPointer?, value: UnsafeRawBufferPointer?, timestamp: WallTime,
        into registration: inout Registration
    ) throws(UnreadableRecord) -> RegistrationChange {
        registration.clear()
        let parts = try RecordKey.registrationParts(key)
        registration.environment = parts.environment
        registration.app = try routes.app(named: parts.app)
        try routes.requireServed(registration.app, parts.environment)
        registration.key.append(contentsOf: parts.environment.name.utf8)
        registration.key.append(contentsOf: parts.afterEnvironment)
        registration.registeredAt = timestamp

        guard let value else { return .removed }
        guard value.count > 0 else {
            throw UnreadableRecord(.emptyValue, "zero length; only null removes a registration")
        }
        var version: JSONValue?
        var targets: JSONValue?
        for (name, value) in try parser.object(value) where !value.isNull {
            switch RegistrationField.table.find(name) {
            case .v: version = value
            case .environment: try Self.check(value, parts.environment)
            case .app: try Self.check("app", value, parts.app)
            case .installation: try Self.check("installation", value, parts.installation)
            case .handler: try Self.check("handler", value, parts.handler)
            case .registeredAt: registration.registeredAt = try value.instant("registeredAt")
            case .targets: targets = value
            case .sequence, nil: break
            }
        }
        guard let version else { throw .missing("v", "write 1") }
        try version.checkVersion()
        guard let targets else {
            throw .missing("targets", "an empty array says that none is left")
        }
        for target in try targets.elements("targets") {
            try read(target, into: &registration)
        }
        return .replaced
    }

    // MARK: The key

    private static func check(
        _ value: JSONValue, _ environment: PushEnvironment
    ) throws(UnreadableRecord) {
        guard try value.environment("environment") == environment else {
            throw UnreadableRecord(.keyMismatch, "environment is not that of the key")
        }
    }

    private static func check(
        _ name: StaticString, _ value: JSONValue, _ part: UnsafeRawBufferPointer
    ) throws(UnreadableRecord) {
        guard try value.text(name, bytes: 1...RecordLimits.keyPartBytesMax).equals(part) else {
            throw UnreadableRecord(.keyMismatch, "\(name) is not that of the key")
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
        var shows: JSONValue?
        for (name, value) in members where !value.isNull {
            switch TargetField.table.find(name) {
            case .tokenClass: word = value
            case .token: token = value
            case .onChange: onChange = value
            case .shows: shows = value
            case nil: break
            }
        }
        guard let word else { throw .missing("class", "what kind of thing owns the token") }
        guard let text = word.string else { throw .field("class", "a string") }
        guard let tokenClass = TokenClass(text),
            let hearsChanges = try Self.hearsChanges(tokenClass, onChange)
        else {
            skippedTargets += 1
            return
        }
        // A control that the system has not given a token yet.
        guard let token else { return }
        var row = Registration.Row(
            tokenClass: tokenClass, hearsChanges: hearsChanges,
            token: try append(token: token, to: &registration), kind: .empty, subject: .empty)
        try append(shows, &row, to: &registration)
    }

    /// Nil for a word of a later release.
    private static func hearsChanges(
        _ tokenClass: TokenClass, _ onChange: JSONValue?
    ) throws(UnreadableRecord) -> Bool? {
        switch tokenClass {
        case .control, .widget: return true
        case .device:
            guard let onChange else { return false }
            guard let word = onChange.string else { throw .field("onChange", "a string") }
            return word.equals("background") ? true : nil
        default: return false
        }
    }

    private mutating func append(
        token value: JSONValue, to registration: inout Registration
    ) throws(UnreadableRecord) -> Registration.Slice {
        let digits = try value.text("token", bytes: 2...(2 * RecordLimits.tokenBytesMax))
        let count = token.withUnsafeMutableBufferPointer {
            Hexadecimal.decode(digits, to: $0.baseAddress!)
        }
        guard let count else { throw .field("token", "an even number of hexadecimal digits") }
        return token.withUnsafeBytes {
            registration.append(UnsafeRawBufferPointer(rebasing: $0[..<count]))
        }
    }

    /// A row for each subject; one without a subject for a target or a kind that shows none.
    private func append(
        _ shows: JSONValue?, _ row: inout Registration.Row, to registration: inout Registration
    ) throws(UnreadableRecord) {
        guard let shows = try shows?.elements("shows"), !shows.isEmpty else {
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
                        try value.text("kind", bytes: 1...RecordLimits.kindBytesMax))
                case .subjects: subjects = try value.elements("subjects")
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
                    try subject.text("subjects", bytes: 1...RecordLimits.subjectBytesMax))
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
