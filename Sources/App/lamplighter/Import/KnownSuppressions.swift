// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Configuration
import Importing
import KafkaLog
import PushModel
import RecordFormats
import Worker

/// The suppressions that stand, by hashes of their keys, so that none is replaced by an older one.
struct KnownSuppressions: ~Copyable {
    private var known: [UInt64: Int64] = [:]
    private let seed: UInt64

    init(_ configuration: Configuration) throws {
        var random = SystemRandomNumberGenerator()
        let seed = random.next()
        self.seed = seed
        var decoder = TokenRecordDecoder(routing: WorkerPlan(configuration).routing)
        var tokenKey = TokenKey()
        var known: [UInt64: Int64] = [:]
        let sweep = TopicSweep(configuration, topic: configuration.kafka.topics.suppressions)
        try sweep.run { record in
            guard let key = record.key else { return true }
            let name = StableHash.hash64(key, seed: seed)
            let suppression = try? decoder.suppression(
                key: key, value: record.value,
                timestamp: WallTime(milliseconds: record.timestampMilliseconds), into: &tokenKey)
            known[name] = suppression?.registeredAt.milliseconds
            return true
        }
        self.known = known
    }

    /// The record that suppresses a row's token up to the time when it was last seen; nil if it is
    /// suppressed up to then already.
    ///
    /// - Throws: `RowProblem` if no credential serves the row's app.
    mutating func record(
        of row: ImportedRow, _ reason: String, _ plan: WorkerPlan
    ) throws(RowProblem) -> (key: [UInt8], value: [UInt8])? {
        guard let app = plan.routing.app(named: row.app),
            let route = plan.routing.route(
                environment: row.environment, app: app, tokenClass: row.tokenClass)
        else {
            throw RowProblem("no credential serves its app in \(row.environment.name)")
        }
        let key = row.token.withUnsafeBufferPointer {
            RecordKey.token(route: plan.routing[route], token: $0)
        }
        let registeredAt = row.lastSeen ?? RegistrationImport.unknownTime
        let name = key.withUnsafeBytes { StableHash.hash64($0, seed: seed) }
        if let standing = known[name], standing >= registeredAt.milliseconds { return nil }
        known[name] = registeredAt.milliseconds
        let suppression = Suppression(
            status: 410, reason: reason, apnsTimestamp: nil, registeredAt: registeredAt)
        return (key, SuppressionEncoder.value(suppression))
    }
}
