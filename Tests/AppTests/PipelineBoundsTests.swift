// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Intake
internal import Pipeline
internal import PushModel
internal import Testing

@testable internal import Worker

@Suite struct `Bounds that the configuration gives the pipeline` {
    /// None of these is the default.
    private let yaml = """
        intake: {recordBytesMax: 32KiB, allowKindWide: true, allowInstallations: true}
        index: {registrationGrace: 3s}
        planning:
          ttl: 7s
          payloadTTL: 8s
          splitAbove: 5000
          spread: 90s
          spreadAbove: 400
          fanOutMax: 6000
          wire: {alert: {priority: 5, expiration: none}}
        delivery:
          attemptsMax: 4
          guard: {suppressionsPerMinuteMax: 77}
          queuedMax: 2000
          queuedBytesMax: 2MiB
          deferredMax: 3000
          holdMax: 20s
          backoffMin: 2s
          backoffMax: 30s
          cooldownMin: 4s
          cooldownMax: 50s
        deadLetters: {tokensMax: 6, eventBytesMax: 9KiB}
        """

    @Test func `the pipeline's bounds are those that the configuration names`() throws {
        let settings = PipelineSettings(try configuration(yaml), eventTopics: ["events"])
        #expect(settings.events.recordBytesMax == 32 << 10 && settings.events.allowKindWide)
        #expect(settings.events.allowInstallations)
        #expect(settings.registrationGrace == .seconds(3))
        #expect(settings.events.changeTTL == .seconds(7))
        #expect(settings.events.payloadTTL == .seconds(8))
        #expect(settings.splitAbove == 5000 && settings.fanOutMax == 6000)
        #expect(settings.spread == .seconds(90) && settings.spreadAbove == 400)
        #expect(settings.wire.priority(.alert) == 5)
        #expect(settings.wire.expiration(.alert) == .none)
        #expect(settings.attemptsMax == 4)
        #expect(settings.tokenGuard.suppressionsPerMinuteMax == 77)
        #expect(settings.slots == 2000 && settings.payloadBytesMax == 2 << 20)
        #expect(settings.deferredMax == 3000 && settings.deferredBytesMax == 2 << 20)
        #expect(settings.holdMax == .seconds(20))
        for backoff in [settings.retryBackoff, settings.breakerBackoff] {
            #expect(backoff.least == .seconds(2) && backoff.most == .seconds(30))
        }
        #expect(settings.coolDownBackoff.least == .seconds(4))
        #expect(settings.coolDownBackoff.most == .seconds(50))
        #expect(settings.deadLetterTokensMax == 6)
        #expect(settings.deadLetterEventBytesMax == 9 << 10)
        #expect(settings.eventTopics == ["events"])
    }
}
