// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import KafkaLog
import PushModel
import RecordFormats
import Worker

/// What is known against a token, as the verdicts topic has it.
struct StandingVerdict {
    var key: [UInt8]
    var lane: LaneID
    var token: TokenName
    var verdict: Verdict
    /// When it was written.
    var writtenAt: WallTime
}

/// The verdicts that stand: the last record of each key, unless that is null.
struct VerdictTable {
    private(set) var verdicts: [StandingVerdict] = []
    /// Of apps that no credential serves, or malformed.
    private(set) var unreadable = 0
    let routing: RoutingTable

    init(_ configuration: Configuration) throws {
        routing = WorkerPlan(configuration).routing
        var decoder = TokenRecordDecoder(routing: routing)
        var tokenKey = TokenKey()
        var byKey: [[UInt8]: StandingVerdict?] = [:]
        var skipped = 0
        let sweep = TopicSweep(configuration, topic: configuration.kafka.topics.verdicts)
        try sweep.run { record in
            let key = record.key.map { Array($0) } ?? []
            do {
                let verdict = try decoder.verdict(
                    key: record.key, value: record.value, into: &tokenKey)
                byKey[key] = verdict.map { verdict in
                    StandingVerdict(
                        key: key, lane: tokenKey.lane, token: TokenName(tokenKey.token),
                        verdict: verdict,
                        writtenAt: WallTime(milliseconds: record.timestampMilliseconds))
                }
            } catch {
                skipped += 1
            }
            return true
        }
        unreadable = skipped
        verdicts = byKey.values.compactMap { $0 }.sorted {
            ($0.writtenAt, $0.token.description) < ($1.writtenAt, $1.token.description)
        }
    }

    /// `apnsTopic` and what else a person looks for.
    func lane(of verdict: StandingVerdict) -> Lane { routing[verdict.lane] }
}
