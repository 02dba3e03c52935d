// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

/// Remembers for some minutes which requests have been accepted, so that one that was recorded by
/// somebody cannot be repeated after a later one has changed the same thing: neither a PUT after a
/// DELETE nor a DELETE after a PUT. The counter of App Attest says which of two requests of a key
/// was made first. A request may be repeated while nothing has come after it: that is a retry.
struct RequestOrder {
    /// What a key has asked for: the last counter, by path.
    private typealias Paths = [String: UInt32]

    /// How long the date of a request is accepted: 5 minutes before its date and 5 after it.
    private let window: Duration
    private let entriesMax: Int
    private var recent: [[UInt8]: Paths] = [:]
    private var recentCount = 0
    private var former: [[UInt8]: Paths] = [:]
    private var turnedAt = WallTime(milliseconds: 0)

    /// An app has a handler or two. A key with more paths than this is held to one order for all.
    static let pathsMax = 64

    init(window: Duration, entriesMax: Int = 100_000) {
        assert(
            window > .zero && entriesMax > 0,
            "a request is remembered for more than no time, and there is room for one")
        self.window = window
        self.entriesMax = entriesMax
    }

    /// Whether the request comes in its order; if so, it is remembered. Paths are related if they
    /// are equal or one contains the other.
    mutating func accepts(
        keyID: [UInt8], path: String, counter: UInt32, now: WallTime
    ) -> Bool {
        turn(now)
        for paths in [recent[keyID], former[keyID]] {
            for (other, last) in paths ?? [:] where last > counter {
                if Self.areRelated(path, other) { return false }
            }
        }
        remember(keyID, path, counter)
        return true
    }

    private mutating func remember(_ keyID: [UInt8], _ path: String, _ counter: UInt32) {
        var paths = recent[keyID] ?? [:]
        recentCount -= paths.count
        paths[path] = max(counter, paths[path] ?? 0)
        // The empty path contains all others.
        if paths.count > Self.pathsMax { paths = ["": paths.values.max() ?? counter] }
        recentCount += paths.count
        recent[keyID] = paths
        assert(
            recentCount >= recent.count,
            "the paths of all keys are counted, and each key has at least one")
    }

    /// What is remembered is forgotten after one to two windows, or sooner when the table is full.
    private mutating func turn(_ now: WallTime) {
        let age = now - turnedAt
        guard age >= window || age < .zero || recentCount >= entriesMax else { return }
        former = age >= window + window ? [:] : recent
        recent = [:]
        recentCount = 0
        turnedAt = now
    }

    private static func areRelated(_ left: String, _ right: String) -> Bool {
        left == right || left.isEmpty || right.isEmpty || left.hasPrefix(right + "/")
            || right.hasPrefix(left + "/")
    }
}
