// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import APNSSimulator
import FleetKit
import Foundation
import LinuxIO
import PushModel
import Rdkafka
import RecordFormats

/// A push token as devices have them.
struct TestToken: Hashable, Sendable {
    let bytes: [UInt8]

    /// One that no other test has.
    init() { bytes = (0..<32).map { _ in UInt8.random(in: .min ... .max) } }

    init(_ hexadecimal: String) { bytes = Hexadecimal.decode(hexadecimal)! }

    var hex: String { Hexadecimal.encode(bytes) }
}

extension RegistrationDraft {
    /// A snapshot of controls of the kind `test`, one a token, that show the same subjects.
    static func controls(
        _ tokens: [TestToken], show subjects: [String], app: String = TestApp.home,
        environment: PushEnvironment = .production,
        installation: String = UUID().uuidString, handler: String = "Controls"
    ) -> RegistrationDraft {
        var draft = RegistrationDraft(
            environment: environment, app: app, installation: installation, handler: handler)
        draft.targets = tokens.map {
            Target(
                tokenClass: .control, token: $0.bytes,
                shows: [Show(kind: "test", subjects: subjects)])
        }
        return draft
    }

    var key: String { String(decoding: RegistrationEncoder.key(self), as: UTF8.self) }
}

extension Fleet {
    /// Writes a snapshot; without a `registeredAt` of its own it gets the present time. As everybody's,
    /// it goes to the partition of its key, so that several are applied in any order.
    func register(_ draft: RegistrationDraft) throws { try register([draft]) }

    func register(_ drafts: [RegistrationDraft]) throws {
        try write(
            drafts.map { draft in
                var draft = draft
                draft.registeredAt = draft.registeredAt ?? Now.current.wall
                return WrittenRecord(
                    topic: .registrations, key: draft.key,
                    value: String(decoding: RegistrationEncoder.value(draft), as: UTF8.self))
            })
    }

    func removeRegistration(_ draft: RegistrationDraft) throws {
        try write(to: .registrations, key: draft.key, value: nil)
    }

    /// "What is shown under this subject has changed", in the key alone.
    func emit(_ subject: String) throws { try write(to: .events, key: subject, value: nil) }

    func emit(_ event: EventDraft) throws {
        try write(
            to: .events, key: event.subject,
            value: String(decoding: EventEncoder.value(event), as: UTF8.self))
    }

    /// Every request for this token so far, in the order of the answers.
    func requests(for token: TestToken) -> [RecordedRequest] {
        let path = "/3/device/\(token.hex)"
        return simulator.recordedRequests.filter { $0[":path"] == path }
    }

    func accepted(_ token: TestToken) -> Int {
        requests(for: token).count { $0.answer.status == 200 }
    }

    /// Emits, and waits until the token has got a push more than before.
    func change(_ subject: String, heardBy token: TestToken) async throws {
        let before = accepted(token)
        try emit(subject)
        try await eventually("a push about \(subject)") { accepted(token) > before }
    }

    /// Returns when every registration written so far has been applied: a later one of each partition
    /// has.
    func registrationsApplied() async throws {
        let markers = (0..<FleetTopics.partitionsEach).map { _ in TestToken() }
        let subject = "marker-\(markers[0].hex.prefix(8))"
        try register(
            markers.enumerated().map { partition, marker in
                var draft: RegistrationDraft
                repeat {
                    draft = .controls([marker], show: [subject])
                } while KeyPartitioner.murmur2(draft.key.utf8, of: FleetTopics.partitionsEach)
                    != Int32(partition)
                return draft
            })
        var emittedAt: ContinuousClock.Instant?
        try await eventually("a push about \(subject)") {
            // On a busy machine the registration may be read later after an event than the event is
            // owed to it.
            if emittedAt.map({ ContinuousClock.now - $0 > .seconds(5) }) ?? true {
                emittedAt = .now
                try emit(subject)
            }
            return markers.allSatisfy { accepted($0) > 0 }
        }
    }
}
