// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Planning
internal import PushModel

/// A push that is owed but has found no free slot. Its claims are taken already, and it is a user of
/// its body.
struct LateRequest {
    var entry: AudienceEntry
    var request: FanOutRequest
    var holds: [Hold]
}
