// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

/// The seeded hash of what a row of `deferred` is for: a token of a route, and a collapse ID.
struct KeyHash {
    let seed: UInt64

    func hash(
        _ route: RouteID, _ token: UnsafeRawBufferPointer, _ coalescingKey: UInt64
    ) -> UInt64 {
        var hash = StableHash(seed: seed &+ UInt64(route.rawValue))
        hash.combine(coalescingKey)
        hash.combine(token)
        return hash.finish().low
    }
}
