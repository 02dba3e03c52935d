// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Logging
internal import PushModel

/// Writes a pool's log lines about its connections: at most one line of each kind in ten seconds,
/// with the number of lines left out.
struct ConnectionLog {
    enum Kind: Int, CaseIterable {
        case connected, connectFailed, certificateRefused, http2Refused, lost, goAway
        case providerToken, answered, resized, replaced, rootsUnreadable
    }

    private struct Recent {
        var at: MonotonicTime?
        var leftOut = 0
    }

    private let logger: Logger
    private var recent = [Recent](repeating: Recent(), count: Kind.allCases.count)
    private static let interval = Duration.seconds(10)

    init(logger: Logger, pool: String) {
        var logger = logger
        logger[metadataKey: "pool"] = "\(pool)"
        self.logger = logger
    }

    /// - Parameters:
    ///   - details: what changes from line to line.
    ///   - remedy: what the operator can do; part of the line.
    mutating func write(
        _ kind: Kind, _ level: Logger.Level, _ message: StaticString,
        _ details: Logger.Metadata = [:], remedy: String? = nil, at now: MonotonicTime
    ) {
        var entry = recent[kind.rawValue]
        if let at = entry.at, now - at < Self.interval {
            recent[kind.rawValue].leftOut += 1
            return
        }
        var metadata = details
        if let remedy { metadata["remedy"] = "\(remedy)" }
        if entry.leftOut > 0 { metadata["leftOut"] = .stringConvertible(entry.leftOut) }
        logger.log(level: level, "\(message)", metadata: metadata)
        entry = Recent(at: now)
        recent[kind.rawValue] = entry
    }
}
