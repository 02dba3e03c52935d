// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// Who showed what, and when: the registrations topic replayed with its timestamps.
///
/// Memory: 32 bytes for each time that a token began to show a subject, and a table entry for each
/// subject and each registration.
struct RegistrationHistory {
    /// A token shows a subject from the record that says so until the one that does not any more.
    struct Showing {
        var token: UInt32
        var subject: UInt32
        /// Milliseconds since 1970, the end excluded.
        var from: Int64
        var until: Int64
    }

    /// A record that names a token, and the time at which the token was registered.
    private struct Naming {
        var token: UInt32
        var t: Int64
        var registeredAt: Int64
    }

    private var showings: [Showing] = []
    private var subjects: [Fingerprint: UInt32] = [:]
    private var ofSubject: [[UInt32]] = []
    /// What each key shows now.
    private var open: [Fingerprint: [UInt32]] = [:]
    private var namings: [UInt32: [Naming]] = [:]

    private(set) var unreadable = 0

    /// Takes the next record of the log in; of one key, records come in the log's order.
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

    /// The showings of a subject, of which several may be of one token.
    func showings(app: String, subject: String) -> [Showing] {
        guard let number = subjects[Self.address(app: app, subject: subject)] else { return [] }
        return ofSubject[Int(number)].map { showings[Int($0)] }
    }

    /// The latest `registeredAt` among the records that had named the token by then; both in
    /// milliseconds since 1970.
    func registeredAt(of token: UInt32, at t: Int64) -> Int64? {
        namings[token]?.lazy.filter { $0.t <= t }.map(\.registeredAt).max()
    }

    // MARK: Snapshots

    private struct Row: Hashable {
        var token: UInt32
        var subject: UInt32
    }

    /// Nil if the snapshot cannot be read. Targets of a class that a plain event does not reach are
    /// left out.
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

    /// Apple's rule: the APNs topic is the bundle identifier and the suffix of the push type.
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

/// Apple's entitlement word, by which both logs name an environment.
enum Environment {
    static func word(_ text: some StringProtocol) -> String? {
        switch text {
        case "production": "production"
        case "development", "sandbox": "development"
        default: nil
        }
    }
}
