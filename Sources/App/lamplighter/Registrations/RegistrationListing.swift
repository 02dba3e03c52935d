// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Configuration
import KafkaLog
import PushModel
import RecordFormats
import RegistrarRules
import Worker

/// The registrations in force: the last record of each key, unless that is a tombstone. The topic is read
/// twice, first for where the last records are; of each key some 50 bytes are in memory, and no token.
final class RegistrationListing {
    private struct Place: Hashable {
        var partition: Int32
        var offset: Int64
    }

    private let configuration: Configuration
    private let routing: RoutingTable
    private let seed: UInt64
    /// How many records no worker of this configuration can read, of apps that it serves.
    private(set) var unreadable = 0

    init(_ configuration: Configuration) {
        self.configuration = configuration
        routing = WorkerPlan(configuration).routing
        var random = SystemRandomNumberGenerator()
        seed = random.next()
    }

    /// Lends each registration that the filter admits, target by target.
    func forEach(
        _ filter: RegistrationFilter.Matcher, _ body: (ListedTarget) throws -> Void
    ) throws {
        let (places, ends) = try lastPlaces(filter)
        if places.isEmpty { return }
        var decoder = RegistrationDecoder(routing: routing)
        var registration = Registration()
        try sweep(upTo: ends) { record in
            guard let key = record.key,
                places[hash(key)] == Place(partition: record.partition, offset: record.offset)
            else { return }
            let writtenAt = WallTime(milliseconds: record.timestampMilliseconds)
            do throws(UnreadableRecord) {
                _ = try decoder.decode(
                    key: key, value: record.value, timestamp: writtenAt, into: &registration)
            } catch {
                let isOthers = [UnreadableCode.unknownApp, .unservedEnvironment]
                    .contains { $0.rawValue == error.code }
                if !isOthers && !error.isLeftOut { unreadable += 1 }
                return
            }
            guard let (key, handler) = InstallationKey.read(recordKey: key),
                filter.admits(registeredAt: registration.registeredAt)
            else { return }
            let head = ListedTarget.Head(
                key: key, handler: handler, registeredAt: registration.registeredAt,
                writtenAt: writtenAt)
            for target in ListedTarget.all(in: registration, head) where filter.admits(target) {
                try body(target)
            }
        }
    }

    private func hash(_ key: UnsafeRawBufferPointer) -> UInt64 {
        StableHash.hash64(key, seed: seed)
    }

    private func lastPlaces(
        _ filter: RegistrationFilter.Matcher
    ) throws -> ([UInt64: Place], TopicSweep.Ends) {
        var places: [UInt64: Place] = [:]
        let ends = try sweep { record in
            guard let key = record.key,
                let (installation, handler) = InstallationKey.read(recordKey: key),
                filter.admits(installation, handler)
            else { return }
            places[hash(key)] =
                record.value == nil
                ? nil : Place(partition: record.partition, offset: record.offset)
        }
        return (places, ends)
    }

    @discardableResult
    private func sweep(
        upTo ends: TopicSweep.Ends? = nil, _ body: (borrowing KafkaRecord) throws -> Void
    ) throws -> TopicSweep.Ends {
        try TopicSweep(configuration, topic: configuration.kafka.topics.registrations)
            .run(upTo: ends) { record in
                try body(record)
                return true
            }
    }
}

/// One token of a registration, and what it shows.
struct ListedTarget {
    struct Head {
        var key: InstallationKey
        var handler: String
        var registeredAt: WallTime
        var writtenAt: WallTime
    }

    struct Show: Encodable, Hashable {
        var kind: String?
        var subjects: [String]
    }

    var head: Head
    var tokenClass: TokenClass
    var token: [UInt8]
    var hearsChanges: Bool
    var shows: [Show]

    var isImported: Bool { ImportedRegistration.isHandler(head.handler) }

    static func all(in registration: borrowing Registration, _ head: Head) -> [ListedTarget] {
        var targets: [ListedTarget] = []
        for row in registration.rows {
            func text(_ slice: Registration.Slice) -> String {
                String(decoding: bytes(slice), as: UTF8.self)
            }
            func bytes(_ slice: Registration.Slice) -> ArraySlice<UInt8> {
                registration.bytes[Int(slice.offset)..<Int(slice.offset) + Int(slice.count)]
            }
            let token = Array(bytes(row.token))
            if targets.last?.token != token || targets.last?.tokenClass != row.tokenClass {
                targets.append(
                    ListedTarget(
                        head: head, tokenClass: row.tokenClass, token: token,
                        hearsChanges: row.hearsChanges, shows: []))
            }
            let kind = row.kind.count > 0 ? text(row.kind) : nil
            let subjects = row.subject.count > 0 ? [text(row.subject)] : []
            let last = targets.count - 1
            if let show = targets[last].shows.last, show.kind == kind {
                targets[last].shows[targets[last].shows.count - 1].subjects += subjects
            } else if kind != nil || !subjects.isEmpty {
                targets[last].shows.append(Show(kind: kind, subjects: subjects))
            }
        }
        return targets
    }

    var subjects: [String] { shows.flatMap(\.subjects) }

    /// For people.
    var line: String {
        let shown = subjects.prefix(Self.subjectsShown).map { "\"\(TerminalText.visible($0))\"" }
        let more = subjects.count - shown.count
        return [
            head.registeredAt.rfc3339, TokenName(token).description, head.key.environment.name,
            head.key.app, head.key.installation, head.handler, tokenClass.name,
            shown.joined(separator: ",") + (more > 0 ? " and \(more) more" : ""),
        ].joined(separator: "  ")
    }

    private static let subjectsShown = 5

    /// - Parameter hasToken: whether the token itself is in it.
    func json(hasToken: Bool) throws -> String {
        try JSONLine.of(
            Line(
                environment: head.key.environment.name, app: head.key.app,
                installation: head.key.installation, handler: head.handler,
                class: tokenClass.name, tokenID: TokenName(token).description,
                token: hasToken
                    ? tokenClass == .channel ? Base64.encode(token) : Hexadecimal.encode(token)
                    : nil,
                registeredAt: head.registeredAt.rfc3339, writtenAt: head.writtenAt.rfc3339,
                hearsChanges: tokenClass.hearsChangesOnDemand ? hearsChanges : nil,
                subjects: subjects, kinds: shows.compactMap(\.kind)))
    }

    private struct Line: Encodable {
        let environment, app, installation, handler, `class`, tokenID: String
        let token: String?
        let registeredAt, writtenAt: String
        let hearsChanges: Bool?
        let subjects, kinds: [String]
    }
}

/// How many targets there are of each app, environment and class.
struct RegistrationCounts {
    private struct Group: Hashable {
        var app, environment, tokenClass: String
    }

    private var groups: [Group: (targets: Int, imported: Int)] = [:]
    private(set) var targets = 0

    mutating func count(_ target: ListedTarget) {
        let group = Group(
            app: target.head.key.app, environment: target.head.key.environment.name,
            tokenClass: target.tokenClass.name)
        targets += 1
        groups[group, default: (0, 0)].targets += 1
        if target.isImported { groups[group]!.imported += 1 }
    }

    private var sorted: [(key: Group, value: (targets: Int, imported: Int))] {
        groups.sorted {
            ($0.key.app, $0.key.environment, $0.key.tokenClass)
                < ($1.key.app, $1.key.environment, $1.key.tokenClass)
        }
    }

    func lines(unreadable: Int) -> [String] {
        sorted.map { group, count in
            "\(group.app)  \(group.environment)  \(group.tokenClass)  \(count.targets)"
                + (count.imported > 0 ? ", of which \(count.imported) imported" : "")
        } + [
            targets.counted("token")
                + (unreadable > 0 ? "; \(unreadable.counted("registration")) unreadable" : "")
        ]
    }

    func json(unreadable: Int) throws -> String {
        try JSONLine.of([
            "summary": Summary(
                tokens: targets, unreadable: unreadable,
                groups: sorted.map { group, count in
                    Summary.Group(
                        app: group.app, environment: group.environment, class: group.tokenClass,
                        tokens: count.targets, imported: count.imported)
                })
        ])
    }

    private struct Summary: Encodable {
        struct Group: Encodable {
            let app, environment, `class`: String
            let tokens, imported: Int
        }

        let tokens, unreadable: Int
        let groups: [Group]
    }
}
