// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

// How figures are written as members of JSON, so that the type that counts them is also the one that is
// written, read again and shown.

/// A member that is always written: as `null` where there is no value.
@propertyWrapper
package struct Nullable<Value: Codable & Sendable & Equatable>: Codable, Sendable, Equatable {
    package var wrappedValue: Value?

    package init(wrappedValue: Value?) { self.wrappedValue = wrappedValue }

    package init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        wrappedValue = container.decodeNil() ? nil : try container.decode(Value.self)
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(wrappedValue)
    }
}

/// A `Duration` that is written in seconds; or a `Duration?`, which is always written, as `null` where
/// there is none.
@propertyWrapper
package struct Seconds<Value: PerhapsDuration>: Codable, Sendable, Equatable {
    package var wrappedValue: Value

    package init(wrappedValue: Value) { self.wrappedValue = wrappedValue }

    /// Reads any number: what no worker has been waiting for becomes the longest that a `Duration` holds
    /// with room for sums.
    package init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let seconds = container.decodeNil() ? nil : try container.decode(Double.self)
        let duration = seconds.map { Duration.seconds(min(max($0, -Self.most), Self.most)) }
        guard let value = Value(duration) else {
            throw DecodingError.dataCorruptedError(
                in: container, debugDescription: "a number of seconds is missing")
        }
        wrappedValue = value
    }

    /// 31 million years; a `Duration` holds more than 9,000 times as many.
    private static var most: Double { 1e15 }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(wrappedValue.duration?.roundedSeconds)
    }
}

/// `Duration` and `Duration?`.
package protocol PerhapsDuration: Sendable, Equatable {
    /// Nil where the type needs a duration and there is none.
    init?(_ duration: Duration?)
    var duration: Duration? { get }
}

extension Duration: PerhapsDuration {
    package init?(_ duration: Duration?) {
        guard let duration else { return nil }
        self = duration
    }

    package var duration: Duration? { self }

    /// The duration in seconds, to the nearest ten microseconds.
    package var roundedSeconds: Double { (self / .microseconds(10)).rounded() / 100_000 }
}

extension Duration?: PerhapsDuration {
    package init?(_ duration: Duration?) { self = duration }

    package var duration: Duration? { self }
}

extension KeyedDecodingContainer {
    /// A worker from before there was the member leaves it out.
    package func decode<Value>(
        _ type: Nullable<Value>.Type, forKey key: Key
    ) throws -> Nullable<Value> {
        try decodeIfPresent(type, forKey: key) ?? Nullable(wrappedValue: nil)
    }

    package func decode(
        _ type: Seconds<Duration?>.Type, forKey key: Key
    ) throws -> Seconds<Duration?> {
        try decodeIfPresent(type, forKey: key) ?? Seconds(wrappedValue: nil)
    }
}

/// RFC 3339 in UTC.
extension WallTime: Codable {
    @usableFromInline package init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        guard let time = WallTime(rfc3339: try container.decode(String.self)) else {
            throw DecodingError.dataCorruptedError(
                in: container, debugDescription: "no instant of RFC 3339")
        }
        self = time
    }

    @usableFromInline package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(rfc3339)
    }
}
