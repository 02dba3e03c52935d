// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
package import Intake

extension PushPipeline {
    /// Takes over what may change while pushes are under way: rules that are asked each time. What
    /// tables, rings and slots were made for stays as it is, whatever `other` says of it. A push that
    /// was made before keeps its life and its headers.
    ///
    /// - Parameter bindings: of the same topics as before, in the same order.
    package mutating func adopt(
        _ other: PipelineSettings, bindings: [TopicBinding]
    ) throws(TopicBindingError) {
        var events = settings.events
        events.changeTTL = other.events.changeTTL
        events.payloadTTL = other.events.payloadTTL
        events.recordBytesMax = other.events.recordBytesMax
        intake = try EventDecoder(bindings: bindings, routing: routing, settings: events)
        settings.events = events
        settings.splitAbove = other.splitAbove
        settings.deferredMax = other.deferredMax
        settings.attemptsMax = other.attemptsMax
        settings.retryBackoff = other.retryBackoff
        settings.coolDownBackoff = other.coolDownBackoff
        settings.breakerBackoff = other.breakerBackoff
        settings.wireDefaults = other.wireDefaults
        settings.deadLetterEventBytesMax = other.deadLetterEventBytesMax
        for lane in lanes.indices { lanes[lane].gate.backoff = other.breakerBackoff }
        for pool in pools.indices { pools[pool].gate.backoff = other.breakerBackoff }
        if settings.tokenGuard != other.tokenGuard { guardTokens(by: other.tokenGuard) }
    }

    /// Each lane gathers a window of answers anew before it believes a 400.
    private mutating func guardTokens(by limits: TokenGuard.Limits) {
        settings.tokenGuard = limits
        for lane in lanes.indices { lanes[lane].tokenGuard = TokenGuard(limits: limits) }
    }
}
