// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Testing

@testable import Configuration
@testable import Worker

@Suite struct `Configuration defaults and bounds` {
    @Test func `the configuration's defaults are these`() throws {
        #expect(try configuration("").description == defaults)
    }

    /// Key, lowest and highest value, and the nearest that are refused.
    static let bounds: [(key: String, low: String, high: String, below: String, above: String)] = [
        ("intake.recordBytesMax", "1KiB", "64MiB", "1023", "67108865"),
        ("index.registrationGrace", "0s", "60s", "-1s", "60001ms"),
        ("index.snapshotEvery", "10s", "24h", "9s", "86401s"),
        ("planning.ttl", "1s", "30d", "999ms", "721h"),
        ("planning.payloadTTL", "1s", "30d", "999ms", "721h"),
        ("planning.splitAbove", "1000", "1000000000", "999", "1000000001"),
        ("planning.spread", "0s", "10m", "-1s", "601s"),
        ("planning.spreadAbove", "100", "1000000000", "99", "1000000001"),
        ("planning.fanOutMax", "1", "1000000000", "0", "1000000001"),
        ("planning.minimumGap.controls", "0s", "24h", "-1s", "86401s"),
        ("planning.minimumGap.widgets", "0s", "24h", "-1s", "86401s"),
        ("planning.minimumGap.background", "0s", "24h", "-1s", "86401s"),
        ("planning.minimumGap.apps.com.example.home.controls", "0s", "24h", "-1s", "86401s"),
        ("planning.minimumGap.apps.com.example.home.widgets", "0s", "24h", "-1s", "86401s"),
        ("planning.minimumGap.apps.com.example.home.background", "0s", "24h", "-1s", "86401s"),
        ("planning.budget.controls", "0", "1440", "-1", "1441"),
        ("planning.budget.widgets", "0", "1440", "-1", "1441"),
        ("planning.budget.background", "0", "1440", "-1", "1441"),
        ("canary.every", "10s", "1h", "9999ms", "3601s"),
        ("deadLetters.repeatAfter", "0s", "24h", "-1s", "86401s"),
        ("delivery.threads", "1", "64", "0", "65"),
        ("delivery.attemptsMax", "1", "100", "0", "101"),
        ("delivery.guard.window", "10", "10000", "9", "10001"),
        ("delivery.guard.badShareMax", "0", "1", "-0.1", "1.01"),
        ("delivery.guard.suppressionsPerMinuteMax", "1", "1000000", "0", "1000001"),
        ("delivery.outcomeSample", "0", "1", "-0.1", "1.01"),
        ("delivery.queuedMax", "1000", "10000000", "999", "10000001"),
        ("delivery.queuedBytesMax", "1MiB", "16GiB", "1023KiB", "17GiB"),
        ("delivery.deferredMax", "1000", "100000000", "999", "100000001"),
        ("delivery.holdMax", "2s", "5m", "1999ms", "301s"),
        ("delivery.backoffMin", "100ms", "5m", "99ms", "301s"),
        ("delivery.backoffMax", "1s", "1h", "999ms", "61m"),
        ("delivery.cooldownMin", "1s", "5m", "999ms", "301s"),
        ("delivery.cooldownMax", "1s", "1h", "999ms", "61m"),
        ("delivery.shutdownTimeout", "1s", "10m", "999ms", "601s"),
        ("delivery.shadowLogBytesMax", "1MiB", "1024GiB", "1023KiB", "1025GiB"),
        ("health.port", "0", "65535", "-1", "65536"),
        ("admin.port", "0", "65535", "-1", "65536"),
        ("apns.endpoints.production.port", "1", "65535", "0", "65536"),
        ("apns.endpoints.development.port", "1", "65535", "0", "65536"),
        ("apns.broadcastEndpoints.production.port", "1", "65535", "0", "65536"),
        ("apns.broadcastEndpoints.development.port", "1", "65535", "0", "65536"),
        ("apns.channelEndpoints.production.port", "1", "65535", "0", "65536"),
        ("apns.channelEndpoints.development.port", "1", "65535", "0", "65536"),
        ("apns.connections", "1", "100", "0", "101"),
        ("apns.connectionsMax", "1", "100", "0", "101"),
        ("apns.streamsMax", "1", "10000", "0", "10001"),
        ("apns.connectTimeout", "100ms", "60s", "99ms", "61s"),
        ("apns.requestTimeout", "1s", "2m", "999ms", "121s"),
        ("apns.pingAfterSilence", "1s", "1h", "999ms", "3601s"),
        ("apns.pingWhenIdle", "1m", "24h", "59s", "86401s"),
        ("apns.pingTimeout", "100ms", "60s", "99ms", "61s"),
        ("apns.ageMax", "1m", "7d", "59s", "8d"),
        ("apns.reconnectMin", "10ms", "60s", "9ms", "61s"),
        ("apns.reconnectMax", "10ms", "10m", "9ms", "601s"),
        ("apns.pushTypes.signage.bodyBytesMax", "1", "5120", "0", "5121"),
        ("kafka.startFrom", "0s", "30d", "-1s", "31d"),
        ("kafka.events.lamplighter.events.ttl", "1s", "30d", "999ms", "31d"),
        ("kafka.events.lamplighter.events.delay", "0s", "15m", "-1s", "901s"),
        ("deadLetters.tokensMax", "1", "500", "0", "501"),
        ("deadLetters.eventBytesMax", "0", "512KiB", "-1", "524289"),
        ("otlp.interval", "1s", "1h", "999ms", "3601s"),
        ("otlp.sampling", "0", "1", "-0.1", "1.1"),
        ("registrar.port", "0", "65535", "-1", "65536"),
        ("registrar.requestTimeout", "1s", "60s", "999ms", "61s"),
        ("registrar.requestsPerSecond", "1", "1000000", "0", "1000001"),
        ("registrar.requestsPerSecondOfInstallation", "1", "10000", "0", "10001"),
        ("registrar.auth.jwt.refreshInterval", "30s", "24h", "29s", "86401s"),
    ]

    @Test(arguments: bounds)
    func `a value is taken within its bounds and refused outside`(
        key: String, low: String, high: String, below: String, above: String
    ) {
        let variable =
            "LAMPLIGHTER_" + key.uppercased().replacing(".", with: "_")
        // Loosened, so that only the key's own bounds speak.
        let room = [
            "LAMPLIGHTER_KAFKA_PROPERTIES_SESSION_TIMEOUT_MS": "120000",
            "LAMPLIGHTER_APNS_RECONNECTMAX": "10m", "LAMPLIGHTER_APNS_RECONNECTMIN": "10ms",
            "LAMPLIGHTER_DELIVERY_BACKOFFMAX": "1h", "LAMPLIGHTER_DELIVERY_BACKOFFMIN": "100ms",
            "LAMPLIGHTER_DELIVERY_COOLDOWNMAX": "1h", "LAMPLIGHTER_DELIVERY_COOLDOWNMIN": "1s",
            "LAMPLIGHTER_OTLP_ENDPOINT": "http://localhost:4318",
            "LAMPLIGHTER_APNS_CREDENTIALS_HOME_APPS": "com.example.home",
            "LAMPLIGHTER_APNS_PUSHTYPES_SIGNAGE_CLASS": "signage",
            "LAMPLIGHTER_APNS_PUSHTYPES_SIGNAGE_TOPICSUFFIX": ".push-type.signage",
        ]
        for value in [low, high] {
            #expect(problems(in: "", room.merging([variable: value]) { $1 }) == [])
        }
        for value in [below, above] {
            let found = problems(in: "", room.merging([variable: value]) { $1 })
            #expect(found.count == 1)
            #expect(found.first?.contains("(\(variable)): is \"\(value)\"; must be") == true)
        }
    }

    @Test func `no configuration key with bounds is left out of the list`() {
        let listed = Set(Self.bounds.map { $0.key })
        for value in Configuration.shape.flatMap(\.values)
        where value.form.notation.contains(" from ") {
            let key = value.path.joined(separator: ".")
                .replacing("<topic>", with: "lamplighter.events")
                .replacing("<type>", with: "signage")
                .replacing("<app>", with: "com.example.home")
            #expect(listed.contains(key), "\(key) has bounds that no test tries")
        }
    }
}

private let defaults = """
    kafka.bootstrap: kafka:9092
    kafka.group: lamplighter
    kafka.clientID: lamplighter
    kafka.topics.registrations: lamplighter.registrations
    kafka.topics.suppressions: lamplighter.suppressions
    kafka.topics.deferred: lamplighter.deferred
    kafka.topics.deadLetters: lamplighter.dead-letters
    kafka.topics.restrictions: lamplighter.restrictions
    kafka.events[lamplighter.events].decode: json
    kafka.events[lamplighter.events].subjects: []
    kafka.events[lamplighter.events].when: []
    kafka.events[lamplighter.events].missing: deadLetter
    kafka.events[lamplighter.events].operations: [create, update, delete]
    kafka.events[lamplighter.events].kinds: []
    kafka.events[lamplighter.events].classes: [control, widget, device, liveActivity, \
    complication, voip, fileProvider, location, pushToTalk, channel]
    kafka.events[lamplighter.events].delay: 0s
    kafka.schemaRegistry.urls: []
    kafka.skip: []
    intake.allowKindWide: false
    intake.allowInstallations: false
    intake.recordBytesMax: 1MiB
    index.registrationGrace: 2s
    index.snapshotEvery: 10m
    planning.ttl: 24h
    planning.payloadTTL: 1h
    planning.splitAbove: 100000
    planning.spread: 0s
    planning.spreadAbove: 1000
    planning.minimumGap.controls: 0s
    planning.minimumGap.widgets: 0s
    planning.minimumGap.background: 30m
    planning.budget.controls: 0
    planning.budget.widgets: 0
    planning.budget.background: 0
    planning.budget.thin: false
    planning.restrictions: []
    planning.wire.controls.priority: 10
    planning.wire.controls.expiration: immediate
    planning.wire.widgets.priority: 10
    planning.wire.widgets.expiration: immediate
    planning.wire.background.priority: 5
    planning.wire.background.expiration: deadline
    planning.wire.alert.priority: 10
    planning.wire.alert.expiration: deadline
    planning.wire.liveactivity.priority: 10
    planning.wire.liveactivity.expiration: immediate
    planning.wire.complication.priority: 10
    planning.wire.complication.expiration: immediate
    planning.wire.voip.priority: 10
    planning.wire.voip.expiration: immediate
    planning.wire.fileprovider.priority: 5
    planning.wire.fileprovider.expiration: immediate
    planning.wire.location.priority: 10
    planning.wire.location.expiration: immediate
    planning.wire.pushtotalk.priority: 10
    planning.wire.pushtotalk.expiration: immediate
    delivery.threads: 1
    delivery.attemptsMax: 10
    delivery.guard.window: 200
    delivery.guard.badShareMax: 0.05
    delivery.guard.suppressionsPerMinuteMax: 1000
    delivery.outcomeSample: 0.01
    delivery.queuedMax: 65536
    delivery.queuedBytesMax: 64MiB
    delivery.deferredMax: 1000000
    delivery.holdMax: 10s
    delivery.backoffMin: 1s
    delivery.backoffMax: 15m
    delivery.cooldownMin: 10s
    delivery.cooldownMax: 15m
    delivery.shutdownTimeout: 25s
    delivery.mode: send
    delivery.shadowLogBytesMax: 1GiB
    apns.credentials.home.team: ABCDE12345
    apns.credentials.home.keyID: FGHIJ67890
    apns.credentials.home.key: (set, not shown)
    apns.credentials.home.apps: [com.example.Home]
    apns.credentials.home.environments: [production, development]
    apns.endpoints.production.host: api.push.apple.com
    apns.endpoints.production.port: 443
    apns.endpoints.development.host: api.sandbox.push.apple.com
    apns.endpoints.development.port: 443
    apns.broadcastEndpoints.production.host: api-broadcast.push.apple.com
    apns.broadcastEndpoints.production.port: 443
    apns.broadcastEndpoints.development.host: api-broadcast.sandbox.push.apple.com
    apns.broadcastEndpoints.development.port: 443
    apns.channelEndpoints.production.host: api-manage-broadcast.push.apple.com
    apns.channelEndpoints.production.port: 2196
    apns.channelEndpoints.development.host: api-manage-broadcast.sandbox.push.apple.com
    apns.channelEndpoints.development.port: 2195
    apns.transport: auto
    apns.connections: 1
    apns.connectionsMax: 8
    apns.streamsMax: 1000
    apns.connectTimeout: 10s
    apns.requestTimeout: 15s
    apns.pingAfterSilence: 1m
    apns.pingWhenIdle: 1h
    apns.pingTimeout: 5s
    apns.ageMax: 24h
    apns.reconnectMin: 1s
    apns.reconnectMax: 1m
    deadLetters.tokensMax: 500
    deadLetters.eventBytesMax: 64KiB
    deadLetters.repeatAfter: 1h
    canary.subject: lamplighter-canary
    health.host: 127.0.0.1
    admin.host: 127.0.0.1
    otlp.interval: 15s
    otlp.sampling: 0.0
    registrar.host: 127.0.0.1
    registrar.requestTimeout: 10s
    registrar.requestsPerSecond: 2000
    registrar.requestsPerSecondOfInstallation: 5
    registrar.trustedProxies: []
    registrar.auth.jwt.installationClaim: installation
    registrar.auth.jwt.subjectPrefixesClaim: subjectPrefixes
    registrar.auth.jwt.requiresSubjectPrefixes: false
    registrar.auth.jwt.refreshInterval: 10m
    log.level: info
    log.format: json
    """
