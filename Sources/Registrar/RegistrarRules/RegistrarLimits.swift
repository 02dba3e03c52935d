// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import RecordFormats

/// What one request may hold. Each is far above what an app has, and keeps one caller from filling
/// the registrations topic or the index.
package struct RegistrarLimits: Hashable, Sendable {
    /// Bytes of a body.
    package var bodyBytesMax = 256 << 10
    /// Bytes of the body of an attestation, which has some 8 KiB, and of a request for a challenge.
    package var attestationBytesMax = 64 << 10
    package var challengeBytesMax = 1 << 10
    /// Targets of one handler: controls or widgets that a person has placed.
    package var targetsMax = 200
    /// Subjects of one handler, over all its targets.
    package var subjectsMax = 1000
    /// Handlers of a complete set, and of an installation.
    package var handlersMax = 64
    /// Bytes of what a GET shows of an installation at once, beyond which no further handler is added.
    package var pageBytes = 2 << 20
    /// Items of a batch.
    package var itemsMax = 500

    package init() {}
}
