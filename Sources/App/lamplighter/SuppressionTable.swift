// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Configuration
import KafkaLog
import PushModel
import RecordFormats
import Worker

/// A suppression in effect, as the suppressions topic has it.
struct ActiveSuppression {
    var key: [UInt8]
    var route: RouteID
    var token: TokenName
    var suppression: Suppression
    /// When the record was written.
    var writtenAt: WallTime
}

/// The suppressions in effect: the last record of each key, unless that is a tombstone.
struct SuppressionTable {
    private(set) var suppressions: [ActiveSuppression] = []
    /// How many records are malformed or of apps that no credential serves.
    private(set) var unreadable = 0
    let routing: RoutingTable

    init(_ configuration: Configuration) throws {
        routing = WorkerPlan(configuration).routing
        var decoder = TokenRecordDecoder(routing: routing)
        var tokenKey = TokenKey()
        var byKey: [[UInt8]: ActiveSuppression?] = [:]
        var skipped = 0
        let sweep = TopicSweep(configuration, topic: configuration.kafka.topics.suppressions)
        try sweep.run { record in
            let key = record.key.map { Array($0) } ?? []
            do throws(UnreadableRecord) {
                let writtenAt = WallTime(milliseconds: record.timestampMilliseconds)
                let suppression = try decoder.suppression(
                    key: record.key, value: record.value, timestamp: writtenAt, into: &tokenKey)
                byKey[key] = suppression.map { suppression in
                    ActiveSuppression(
                        key: key, route: tokenKey.route, token: TokenName(tokenKey.token),
                        suppression: suppression, writtenAt: writtenAt)
                }
            } catch {
                if !error.isLeftOut { skipped += 1 }
            }
            return true
        }
        unreadable = skipped
        suppressions = byKey.values.compactMap { $0 }.sorted {
            ($0.writtenAt, $0.token.description) < ($1.writtenAt, $1.token.description)
        }
    }

    /// The route of a suppression, with its app, APNs topic and environment.
    func route(of suppression: ActiveSuppression) -> Route { routing[suppression.route] }
}
