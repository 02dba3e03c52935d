// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// Which token showed which subject, and when: the registrations topic, replayed with its
/// timestamps.
///
/// Memory holds 32 bytes for each time a token began to show a subject, and a table entry for each
/// subject and each registration.
struct RegistrationHistory {
    /// A token shows a subject from the record that says so until a later record of the same key
    /// does not.
    struct Showing {
        var token: UInt32
        var subject: UInt32
        /// From this time to `until`, which is excluded; both in milliseconds since 1970.
        var from: Int64
        var until: Int64
    }

    /// A record that contains a token, and the time at which the token was registered.
    private struct Naming {
        var token: UInt32
        var t: Int64
        var registeredAt: Int64
    }

    private var showings: [Showing] = []
    private var subjects: [Fingerprint: UInt32] = [:]
    private var ofSubject: [[UInt32]] = []
    /// The showings that each key has at present.
    private var open: [Fingerprint: [UInt32]] = [:]
    private var namings: [UInt32: [Naming]] = [:]

    private(set) var unreadable = 0

    /// Applies a record. The records of one key must come in the order of the log.
    mutating func apply(_ record: LoggedRecord, tokens: inout TokenBook) {
        let parts = record.key.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 4, let environment = Environment.word(parts[0]) else {
            unreadable += 1
            return
        }
        var key = Fingerprint()
        for part in [environment] + parts[1...].map(String.init) { key.add(part) }
        guard record.value != nil else {
            close(open.removeValue(forKey: key) ?? [], at: record.t)
            return
        }
        guard let members = record.members, let targets = members.objects("targets"),
            let registeredAt = members.has("registeredAt")
                ? members.instant("registeredAt") : record.t,
            let rows = rows(
                of: targets, environment: environment, app: String(parts[1]), tokens: &tokens)
        else {
            unreadable += 1
            return
        }
        for token in Set(rows.map(\.token)) {
            namings[token, default: []].append(
                Naming(token: token, t: record.t, registeredAt: registeredAt))
        }
        replace(key, by: rows, at: record.t)
    }

    /// The showings of a subject. Several may belong to the same token.
    func showings(app: String, subject: String) -> [Showing] {
        guard let number = subjects[Self.address(app: app, subject: subject)] else { return [] }
        return ofSubject[Int(number)].map { showings[Int($0)] }
    }

    /// The latest `registeredAt` among the records up to `t` that contain the token; both in
    /// milliseconds since 1970.
    func registeredAt(of token: UInt32, at t: Int64) -> Int64? {
        namings[token]?.lazy.filter { $0.t <= t }.map(\.registeredAt).max()
    }

    // MARK: Snapshots

    private struct Row: Hashable {
        var token: UInt32
        var subject: UInt32
    }

    /// What a registration shows; nil if it cannot be read. Targets of a class that a plain event
    /// does not reach are left out.
    private mutating func rows(
        of targets: [JSONMembers], environment: String, app: String, tokens: inout TokenBook
    ) -> Set<Row>? {
        var rows: Set<Row> = []
        for target in targets {
            guard let word = target.text("class") else { return nil }
            guard let suffix = Self.suffix(class: word, onChange: target.text("onChange")),
                target.has("token")
            else { continue }
            guard let text = target.text("token"),
                let token = tokens.add(
                    environment: environment, topic: app + suffix, token: text)
            else { return nil }
            for show in target.objects("shows") ?? [] {
                for subject in show.texts("subjects") ?? [] {
                    rows.insert(Row(token: token, subject: number(app: app, subject: subject)))
                }
            }
        }
        return rows
    }

    /// The suffix of the APNs topic of a class; nil if a plain event does not reach it. By Apple's
    /// rule the topic is the bundle identifier and the suffix of the push type.
    private static func suffix(class word: String, onChange: String?) -> String? {
        switch word {
        case "control": ".push-type.controls"
        case "widget": ".push-type.widgets"
        case "device" where onChange == "background": ""
        default: nil
        }
    }

    private static func address(app: String, subject: String) -> Fingerprint {
        var address = Fingerprint()
        address.add(app)
        address.add(subject)
        return address
    }

    private mutating func number(app: String, subject: String) -> UInt32 {
        let address = Self.address(app: app, subject: subject)
        if let known = subjects[address] { return known }
        let number = UInt32(ofSubject.count)
        subjects[address] = number
        ofSubject.append([])
        return number
    }

    private mutating func replace(_ key: Fingerprint, by rows: Set<Row>, at t: Int64) {
        var begun = rows
        var kept: [UInt32] = []
        var ended: [UInt32] = []
        for index in open[key] ?? [] {
            let showing = showings[Int(index)]
            let stays = begun.remove(Row(token: showing.token, subject: showing.subject)) != nil
            if stays { kept.append(index) } else { ended.append(index) }
        }
        close(ended, at: t)
        for row in begun {
            let index = UInt32(showings.count)
            showings.append(
                Showing(token: row.token, subject: row.subject, from: t, until: .max))
            ofSubject[Int(row.subject)].append(index)
            kept.append(index)
        }
        open[key] = kept
    }

    private mutating func close(_ indices: [UInt32], at t: Int64) {
        for index in indices { showings[Int(index)].until = t }
    }
}

/// Parses an environment: the word of Apple's entitlement, which both logs use.
enum Environment {
    static func word(_ text: some StringProtocol) -> String? {
        switch text {
        case "production": "production"
        case "development", "sandbox": "development"
        default: nil
        }
    }
}
