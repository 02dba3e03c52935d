// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// What a deferred push says, without its names.
package struct DeferredContent: BitwiseCopyable {
    package var notBefore: MonotonicTime
    package var expiresAt: MonotonicTime
    package var type: PushType
    package var priority: UInt8
    package var expiration: ExpirationRule
    package var attempts: UInt16
    package var firstTriedAt: MonotonicTime?
    package var origin: RecordPosition
    package var subject: UInt32
    package var subjectTag: UInt32
    /// When it was read, in the planner's own count.
    package var readSequence: UInt64
    /// Of `DeferredTable.bodies`; `.none` for "look again".
    package var body = BodyID.none

    package init(
        notBefore: MonotonicTime, expiresAt: MonotonicTime, type: PushType, priority: UInt8,
        expiration: ExpirationRule, attempts: UInt16, origin: RecordPosition, subject: UInt32,
        subjectTag: UInt32, readSequence: UInt64
    ) {
        self.notBefore = notBefore
        self.expiresAt = expiresAt
        self.type = type
        self.priority = priority
        self.expiration = expiration
        self.attempts = attempts
        self.origin = origin
        self.subject = subject
        self.subjectTag = subjectTag
        self.readSequence = readSequence
    }
}
