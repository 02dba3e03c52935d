// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel
internal import RecordFormats

/// What a row says.
package struct ImportedRow: Hashable, Sendable {
    package enum Standing: Hashable, Sendable {
        case live, optedOut, dead
    }

    package var line: Int
    package var environment: PushEnvironment
    package var app: String
    /// The app's own identifier; nil if the row has none.
    package var installation: String?
    package var tokenClass: TokenClass
    package var token: [UInt8]
    /// nil if the row does not say it.
    package var lastSeen: WallTime?
    package var subjects: [String]
    package var standing: Standing

    package init(
        line: Int, _ key: (environment: PushEnvironment, app: String, installation: String?),
        _ token: (class: TokenClass, bytes: [UInt8]), lastSeen: WallTime?, subjects: [String] = [],
        standing: Standing = .live
    ) {
        self.line = line
        environment = key.environment
        app = key.app
        installation = key.installation
        tokenClass = token.class
        self.token = token.bytes
        self.lastSeen = lastSeen
        self.subjects = subjects
        self.standing = standing
    }
}

/// Why a row that is right is not imported.
package enum LeftOutRow: String, CaseIterable, Sendable {
    case ofAnotherPlatform, withoutToken, withoutSubject, unseenForLong

    package var words: String {
        switch self {
        case .ofAnotherPlatform: "of another platform"
        case .withoutToken: "without a token"
        case .withoutSubject: "without a subject"
        case .unseenForLong: "unseen for too long"
        }
    }
}

package enum MappedRow: Sendable {
    case row(ImportedRow)
    case leftOut(LeftOutRow)
}

/// Makes of a row's texts what it says of an installation, or says why it cannot.
package struct RowMapper: Sendable {
    package static let subjectsMax = 1000

    package var format: SourceFormat
    package var columns: [RowField: String]
    /// What every row is of unless it says so itself.
    package var environment: PushEnvironment?
    package var app: String?
    package var tokenClass = TokenClass.device
    package var templates: [SubjectTemplate]
    /// The column by which a row's further subjects are found elsewhere.
    package var joinColumn: String?
    /// Whether every row is of a dead token, so that none needs a subject.
    package var areDead = false
    /// Rows that were last seen before are left out.
    package var seenSince: WallTime?
    private let places: [String: Int]

    /// The columns whose texts `row` wants, in their order.
    package let wanted: [String]

    package init(
        _ format: SourceFormat, columns: [RowField: String], templates: [SubjectTemplate],
        joinColumn: String? = nil
    ) throws(SourceProblem) {
        self.format = format
        self.columns = format.columns.merging(columns) { $1 }
        self.templates = templates
        self.joinColumn = joinColumn
        guard self.columns[.token] != nil else {
            throw SourceProblem(reason: "no column has the token: name it, as in token=push_token")
        }
        var wanted: [String] = []
        let named = RowField.allCases.compactMap { [columns = self.columns] in columns[$0] }
        for name in named + templates.flatMap(\.columns) + (joinColumn.map { [$0] } ?? [])
        where !wanted.contains(name) {
            wanted.append(name)
        }
        self.wanted = wanted
        places = Dictionary(uniqueKeysWithValues: wanted.enumerated().map { ($1, $0) })
    }

    /// Those of a vendor that its export need not have.
    package var optional: Set<String> {
        guard format == .onesignal else { return [] }
        return columns[.subscription] == format.columns[.subscription]
            ? [columns[.subscription]!] : []
    }

    // MARK: Rows

    /// - Parameters:
    ///   - values: the texts of each wanted column.
    ///   - joined: the subjects that another file has for a text of the join column.
    package func row(
        _ values: RowReader.Values, line: Int, now: WallTime,
        joined: (String) throws -> [String] = { _ in [] }
    ) throws -> MappedRow {
        assert(values.count == wanted.count, "a row has the texts of each wanted column")
        if let platforms = format.platforms, columns[.platform] != nil,
            !platforms.contains((text(.platform, values) ?? "").lowercased())
        {
            return .leftOut(.ofAnotherPlatform)
        }
        guard let digits = text(.token, values) else { return .leftOut(.withoutToken) }
        let token = try Self.token(digits)
        assert(
            (1...RecordLimits.tokenBytesMax).contains(token.count),
            "a token that was read has 1 to tokenBytesMax bytes")
        let lastSeen = try text(.lastSeen, values).map {
            try Self.instant($0, now: now)
        }
        if let seenSince, let lastSeen, lastSeen < seenSince { return .leftOut(.unseenForLong) }
        let standing = areDead ? .dead : try standing(values)
        let subjects = standing == .live ? try self.subjects(values, joined) : []
        guard !subjects.isEmpty || standing != .live else { return .leftOut(.withoutSubject) }
        return .row(
            ImportedRow(
                line: line,
                (try environment(values), try app(values), try keyPart(.installation, values)),
                (try tokenClass(values), token), lastSeen: lastSeen, subjects: subjects,
                standing: standing))
    }

    private func text(_ field: RowField, _ values: RowReader.Values) -> String? {
        guard let text = columns[field].flatMap({ places[$0] }).flatMap({ values[$0].first }),
            !text.isEmpty
        else { return nil }
        return text
    }

    private func keyPart(_ field: RowField, _ values: RowReader.Values) throws(RowProblem)
        -> String?
    {
        guard let text = text(field, values) else { return nil }
        guard RecordKey.isPart(text) else {
            throw RowProblem("\(field.rawValue) is not 1 to 128 of A-Z a-z 0-9 . _ ~ -")
        }
        return text
    }

    private func app(_ values: RowReader.Values) throws(RowProblem) -> String {
        guard let app = try keyPart(.app, values) ?? app else {
            throw RowProblem("it names no app")
        }
        return app
    }

    // MARK: Words

    /// The channels of Amazon's services, in lower case.
    static let channels: [String: (environment: PushEnvironment, tokenClass: TokenClass)] = [
        "apns": (.production, .device), "apns_sandbox": (.development, .device),
        "apns_voip": (.production, .voip), "apns_voip_sandbox": (.development, .voip),
    ]

    private func environment(_ values: RowReader.Values) throws(RowProblem) -> PushEnvironment {
        guard let word = text(.environment, values) else {
            guard let environment else { throw RowProblem("it names no environment") }
            return environment
        }
        if let environment = PushEnvironment(name: word) { return environment }
        switch word.lowercased() {
        case "prod", "production": return .production
        case "dev", "development", "sandbox": return .development
        case let word:
            guard let channel = Self.channels[word] else {
                throw RowProblem("environment is neither production nor development")
            }
            return channel.environment
        }
    }

    private func tokenClass(_ values: RowReader.Values) throws(RowProblem) -> TokenClass {
        guard let word = text(.tokenClass, values) else { return tokenClass }
        let named = TokenClass(name: word) ?? Self.channels[word.lowercased()]?.tokenClass
        guard let tokenClass = named, tokenClass != .channel else {
            throw RowProblem("class is not one of a token's")
        }
        return tokenClass
    }

    private func standing(
        _ values: RowReader.Values
    ) throws(RowProblem) -> ImportedRow.Standing {
        let isDead = try isSet(.dead, values) ?? false
        let isAlive = try isSet(.alive, values) ?? true
        if isDead || !isAlive { return .dead }
        let hasOptedOut = try isSet(.optedOut, values) ?? false
        let hasOptedIn = try isSet(.optedIn, values) ?? true
        if hasOptedOut || !hasOptedIn { return .optedOut }
        guard let number = text(.subscription, values) else { return .live }
        guard let subscription = Int(number) else { throw RowProblem("subscription is no number") }
        return subscription > 0 ? .live : .optedOut
    }

    private static let yes: Set<String> = [
        "t", "true", "1", "yes", "y", "on", "active", "enabled", "all", "unsubscribed",
    ]
    private static let no: Set<String> = [
        "f", "false", "0", "no", "n", "off", "inactive", "disabled", "none", "subscribed",
        "opted_in",
    ]

    private func isSet(_ field: RowField, _ values: RowReader.Values) throws(RowProblem) -> Bool? {
        guard let word = text(field, values)?.lowercased() else { return nil }
        if Self.yes.contains(word) { return true }
        guard Self.no.contains(word) else {
            throw RowProblem("\(field.rawValue) is neither yes nor no")
        }
        return false
    }

    // MARK: Tokens, instants

    /// Hexadecimal digits, as PostgreSQL writes `bytea`, or as `NSData` described itself in old apps.
    static func token(_ text: String) throws(RowProblem) -> [UInt8] {
        guard text.utf8.count <= 4 * RecordLimits.tokenBytesMax else {
            throw RowProblem("token is longer than \(RecordLimits.tokenBytesMax) bytes")
        }
        var digits = text.hasPrefix("\\x") ? String(text.dropFirst(2)) : text
        if digits.hasPrefix("<"), digits.hasSuffix(">") {
            digits = String(digits.dropFirst().dropLast().filter { $0 != " " })
        }
        guard let token = Hexadecimal.decode(digits) else {
            throw RowProblem("token is not an even number of hexadecimal digits")
        }
        guard token.count <= RecordLimits.tokenBytesMax else {
            throw RowProblem("token is longer than \(RecordLimits.tokenBytesMax) bytes")
        }
        return token
    }

    /// RFC 3339, PostgreSQL's timestamps, of which one without a zone is in UTC, and seconds or
    /// milliseconds since 1970.
    static func instant(_ text: String, now: WallTime) throws(RowProblem) -> WallTime {
        let instant = number(text) ?? timestamp(text)
        guard let instant else {
            throw RowProblem(
                "lastSeen is no instant such as 2026-11-21T06:12:00Z, nor seconds since 1970")
        }
        guard RecordMoment.isTimestamp(instant),
            !RecordMoment.isFar(instant, after: now, .ofRegistration)
        else { throw RowProblem("lastSeen is not between 2001 and now") }
        return instant
    }

    private static func number(_ text: String) -> WallTime? {
        guard text.utf8.count < 20, let number = Double(text), number.isFinite, number > 0 else {
            return nil
        }
        // Seconds of today have ten digits, milliseconds thirteen.
        let milliseconds = number < 1e11 ? number * 1000 : number
        return milliseconds < 1e15 ? WallTime(milliseconds: Int64(milliseconds)) : nil
    }

    private static func timestamp(_ text: String) -> WallTime? {
        if let instant = WallTime(rfc3339: text) { return instant }
        guard text.utf8.count <= 40 else { return nil }
        var bytes = Array(text.utf8)
        guard bytes.count >= 19 else { return nil }
        if bytes[10] == UInt8(ascii: " ") { bytes[10] = UInt8(ascii: "T") }
        var rest = String(decoding: bytes, as: UTF8.self)
        if rest.hasSuffix(" UTC") { rest = rest.dropLast(4) + "Z" }
        let zone = rest.dropFirst(19).drop { $0 == "." || $0.isNumber }
        switch zone.count {
        case 0: rest += "Z"
        // +00
        case 3: rest += ":00"
        // +0000
        case 5 where !zone.contains(":"):
            rest.insert(":", at: rest.index(rest.endIndex, offsetBy: -2))
        default: break
        }
        return WallTime(rfc3339: rest)
    }

    // MARK: Subjects

    private func subjects(
        _ values: RowReader.Values, _ joined: (String) throws -> [String]
    ) throws -> [String] {
        var subjects: [String] = []
        for template in templates {
            subjects += try template.subjects { name in places[name].map { values[$0] } ?? [] }
        }
        if let joinColumn, let place = places[joinColumn] {
            for key in values[place] where !key.isEmpty { subjects += try joined(key) }
        }
        guard subjects.count <= Self.subjectsMax else {
            throw RowProblem("it makes more than \(Self.subjectsMax) subjects")
        }
        guard subjects.allSatisfy({ RecordLimits.subjectBytes.contains($0.utf8.count) }) else {
            throw RowProblem("a subject is longer than \(RecordLimits.subjectBytesMax) bytes")
        }
        var seen: Set<String> = []
        return subjects.filter { seen.insert($0).inserted }
    }
}
