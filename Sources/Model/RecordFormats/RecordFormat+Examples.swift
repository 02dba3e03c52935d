// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

extension RecordFormat {
    /// A record as the encoders write it; tests read it with the decoders and the schemas.
    package struct Example: Sendable {
        package let key: [UInt8]
        package let value: [UInt8]

        package init(key: [UInt8], value: [UInt8]) {
            self.key = key
            self.value = value
        }
    }

    static var exampleEvent: Example {
        var event = EventDraft()
        event.time = exampleTime
        event.app = exampleApp
        event.kinds = [exampleKind]
        event.ttlSeconds = 3600
        return Example(key: Array(exampleSubject.utf8), value: EventEncoder.value(event))
    }

    static var exampleRegistration: Example {
        var draft = RegistrationDraft(
            environment: .production, app: exampleApp, installation: "6F1C",
            handler: "GarageControls")
        draft.sequence = 17
        draft.registeredAt = exampleTime
        draft.targets = [
            .init(
                tokenClass: .control, token: exampleToken,
                shows: [.init(kind: exampleKind, subjects: [exampleSubject])])
        ]
        return Example(
            key: RegistrationEncoder.key(draft), value: RegistrationEncoder.value(draft))
    }

    static var exampleSuppression: Example {
        let suppression = Suppression(
            status: 410, reason: "Unregistered", apnsTimestamp: exampleTime,
            registeredAt: exampleTime + .seconds(-86_400))
        return Example(key: exampleTokenKey(.control), value: SuppressionEncoder.value(suppression))
    }

    static var exampleDeferred: Example {
        var push = DeferredPush(
            notBefore: exampleTime + .seconds(1800), expiresAt: exampleTime + .seconds(86_400),
            tokenClass: .device, attempts: 2,
            payload: EventPayload(body: examplePayload, type: .alert))
        push.payloadAt = exampleTime
        push.collapseID = "door-42"
        push.source = exampleSource
        push.sourceAt = exampleTime
        push.subject = Array(exampleSubject.utf8)
        push.firstAt = exampleTime + .seconds(1)
        return Example(
            key: exampleTokenKey(.device, coalescingKey: 0x51A0_09F3_22C7_D8E4),
            value: DeferredEncoder.value(push))
    }

    static var exampleDeadLetter: Example {
        var letter = DeadLetter(
            reason: "DeviceTokenNotForTopic", source: exampleSource,
            firstAt: exampleTime + .seconds(1), lastAt: exampleTime + .seconds(1), attempts: 1,
            subject: Array(exampleSubject.utf8),
            targets: [
                .init(token: exampleToken, environment: .production, apnsTopic: exampleApp)
            ])
        letter.status = 400
        letter.app = exampleApp
        letter.correlation = Correlation(id: exampleEventID, traceparent: exampleTraceparent)
        letter.original = .init(key: nil, value: examplePayload)
        return Example(
            key: Array(exampleSubject.utf8),
            value: DeadLetterEncoder.value(letter, eventBytesMax: RecordLimits.originalBytesMax))
    }

    static var exampleRestriction: Example {
        var restriction = Restriction(.limit(perSecond: 500), by: "anna", at: exampleTime)
        restriction.until = exampleTime + .seconds(3600)
        restriction.reason = "the backend is slow"
        return Example(
            key: RecordKey.restriction(.pushes(app: exampleApp, tokenClass: .device)),
            value: RestrictionEncoder.value(restriction))
    }

    static var exampleOutcome: Example {
        let tokenID = "8f53a2a3a5b1c9d0"
        var record = OutcomeRecord(
            at: exampleTime + .milliseconds(412), app: exampleApp, environment: .production,
            tokenClass: .device, type: .alert, tokenID: tokenID,
            apnsID: APNSID(high: 0x3C5E_9A10_77D2_8B41, low: 0x9F0E_6A3D_52C8_1B74),
            outcome: .rejected)
        (record.status, record.reason) = (400, "DeviceTokenNotForTopic")
        (record.attempts, record.latency) = (1, .milliseconds(412))
        record.subject = Array(exampleSubject.utf8)
        (record.eventID, record.source) = (exampleEventID, exampleSource)
        return Example(key: Array(tokenID.utf8), value: OutcomeEncoder.value(record))
    }

    // MARK: Values of the examples

    package static var exampleApp: String { "com.example.Home" }
    private static var exampleKind: String { "com.example.garageDoor" }
    private static var exampleSubject: String { "door-42" }
    private static var exampleTime: WallTime { WallTime(rfc3339: "2026-11-21T06:12:00.123Z")! }
    private static var exampleToken: [UInt8] { [0x00, 0xFC, 0x13, 0xA4] }
    private static var examplePayload: [UInt8] {
        Array(#"{"aps":{"alert":"The door is open"}}"#.utf8)
    }
    private static var exampleEventID: String { "0191f2c4-7c1e" }
    private static var exampleTraceparent: String {
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    }
    private static var exampleSource: DeadLetter.Source {
        DeadLetter.Source(topic: "lamplighter.events", partition: 3, offset: 7_105)
    }

    private static func exampleTokenKey(
        _ tokenClass: TokenClass, coalescingKey: UInt64 = 0
    ) -> [UInt8] {
        var routing = RoutingTable()
        routing.add(credential: "home", apps: [exampleApp], environments: [.production])
        let route = routing.routes.first { $0.tokenClass == tokenClass }!
        return exampleToken.withUnsafeBufferPointer {
            RecordKey.deferred(route: route, token: $0, coalescingKey: coalescingKey)
        }
    }
}
