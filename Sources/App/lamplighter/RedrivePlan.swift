// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Configuration
import Delivery
import PushModel
import RecordFormats
import Worker

/// Decides which records make a dead letter's pushes be tried again: a deferred push that is due at
/// once for each failing token, or, if an event record could not be read, that record.
struct RedrivePlan: ~Copyable {
    private let routing: RoutingTable
    private let eventTopics: [String]
    private let changeLife: Duration
    private let payloadLife: Duration
    private var decoder = DeadLetterDecoder()

    /// The topics to write to; `OwnedRecord.topic` is a position in this list.
    let topics: [String]

    /// Why a letter, or one of its tokens, is not tried again.
    enum Refusal: String, CaseIterable {
        case forbidden, eventLeftOut, unreadablePayload, unserved, noSuchPush, foreignTopic
        case binaryHeader

        var words: String {
            switch self {
            case .forbidden: "Apple forbids another try"
            case .eventLeftOut: "the letter was written without the event that it needs"
            case .unreadablePayload: "APNs would not take the letter's payload"
            case .unserved: "no credential serves the app and the environment"
            case .noSuchPush: "tokens of this class get no such push"
            case .foreignTopic: "kafka.events does not have the event's topic"
            case .binaryHeader: "a header of the record is not text"
            }
        }
    }

    /// The records to write for one letter, and how many of its tokens are refused; a letter
    /// without tokens counts as one.
    struct Orders {
        var records: [OwnedRecord] = []
        var refused: [Refusal: Int] = [:]
    }

    init(_ configuration: Configuration) {
        let plan = WorkerPlan(configuration)
        routing = plan.routing
        eventTopics = plan.eventTopics
        topics = [plan.deferredTopic] + plan.eventTopics
        changeLife = configuration.planning.ttl
        payloadLife = configuration.planning.payloadTTL
    }

    mutating func orders(for letter: DeadLetter, now: WallTime) -> Orders {
        let count = max(1, letter.failures ?? letter.targets.count)
        if AnswerTable.forbiddenToRetry.contains(APNSReason(letter.reason)) {
            return Orders(refused: [.forbidden: count])
        }
        let isNeeded = letter.targets.isEmpty && letter.original == nil
        if letter.isOriginalLeftOut || isNeeded { return Orders(refused: [.eventLeftOut: count]) }
        if letter.targets.isEmpty { return original(of: letter) }
        return pushes(of: letter, now: now)
    }

    private func original(of letter: DeadLetter) -> Orders {
        guard let topic = eventTopics.firstIndex(of: letter.source.topic),
            let original = letter.original
        else { return Orders(refused: [.foreignTopic: 1]) }
        var record = OwnedRecord(
            topic: 1 + topic, partition: letter.source.partition, key: original.key,
            value: original.value)
        for header in original.headers {
            guard let text = String(validating: header.value, as: UTF8.self) else {
                return Orders(refused: [.binaryHeader: 1])
            }
            if header.name == DeadLetter.releasedHeader { continue }
            record.headers.append((header.name, text))
        }
        if letter.isOfWithheldEvent {
            record.headers.append((DeadLetter.releasedHeader, letter.source.text))
        }
        return Orders(records: [record])
    }

    private mutating func pushes(of letter: DeadLetter, now: WallTime) -> Orders {
        let event = letter.payloadSource ?? letter.source
        var orders = Orders()
        for target in letter.targets {
            let id = routing.route(
                environment: target.environment, apnsTopic: target.apnsTopic)
            guard let id else {
                orders.refused[.unserved, default: 0] += 1
                continue
            }
            let route = routing[id]
            let payload: EventPayload?
            do throws(UnreadableRecord) {
                payload = try decoder.payload(of: letter, for: route.tokenClass)
            } catch {
                orders.refused[.unreadablePayload, default: 0] += 1
                continue
            }
            guard payload != nil || route.tokenClass.changeType != nil else {
                orders.refused[.noSuchPush, default: 0] += 1
                continue
            }
            let identity = payload.map { payload in
                PayloadIdentity(
                    payload, collapseID: letter.collapseID,
                    event: StableHash.event(
                        topicSeed: StableHash.topicSeed(event.topic),
                        partition: event.partition, offset: event.offset))
            }
            orders.records.append(
                record(of: letter, to: target.token, route: route, payload, identity, now: now))
        }
        return orders
    }

    private func record(
        of letter: DeadLetter, to token: [UInt8], route: Route, _ payload: EventPayload?,
        _ identity: PayloadIdentity?, now: WallTime
    ) -> OwnedRecord {
        var push = DeferredPush(
            notBefore: now, expiresAt: now + (payload == nil ? changeLife : payloadLife),
            tokenClass: route.tokenClass, payload: payload)
        push.source = letter.source
        push.payloadSource = letter.payloadSource
        push.subject = letter.subject
        push.payloadSubject = letter.payloadSubject
        push.installation = letter.installation
        if let collapseID = identity?.collapseID, !collapseID.isEmpty {
            push.collapseID = String(decoding: collapseID, as: UTF8.self)
        }
        let key = token.withUnsafeBufferPointer { token in
            RecordKey.deferred(
                route: route, token: token, coalescingKey: identity?.coalescingKey ?? 0)
        }
        return OwnedRecord(topic: 0, key: key, value: DeferredEncoder.value(push))
    }
}
