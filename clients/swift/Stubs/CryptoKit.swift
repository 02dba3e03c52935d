// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

@_exported import FoundationOnApple

// developer.apple.com/documentation/cryptokit/sha256digest: a Sequence of its bytes
public struct SHA256Digest: Sequence, Sendable {
    public func makeIterator() -> Array<UInt8>.Iterator { fatalError() }
}

public struct SHA256 {
    // developer.apple.com/documentation/cryptokit/hashfunction/hash(data:)
    public static func hash<D: DataProtocol>(data: D) -> SHA256Digest { fatalError() }
}
