// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Glibc

/// A range of IP addresses, such as `10.0.0.0/8`, `fd00::/8` or one address alone.
package struct AddressRange: Hashable, Sendable {
    /// As it was written.
    package let text: String
    private let address: [UInt8]
    private let prefix: Int

    /// - Returns: nil for anything else; names too, which would have to be asked for.
    package init?(_ text: String) {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count <= 2, let address = Self.bytes(of: String(parts[0])) else { return nil }
        let bits = address.count * 8
        guard let prefix = parts.count == 1 ? bits : Self.number(parts[1]), prefix <= bits else {
            return nil
        }
        self.text = text
        self.address = address
        self.prefix = prefix
    }

    func contains(_ other: [UInt8]) -> Bool {
        guard other.count == address.count else { return false }
        let whole = prefix / 8
        guard other.prefix(whole) == address.prefix(whole) else { return false }
        let rest = prefix % 8
        return rest == 0 || (other[whole] ^ address[whole]) >> (8 - rest) == 0
    }

    private static func number(_ text: Substring) -> Int? {
        text.allSatisfy { ("0"..."9").contains($0) } ? Int(text) : nil
    }

    /// 4 bytes or 16; nil for what is no address. An IPv4 address on a socket of both is one of IPv4.
    static func bytes(of text: String) -> [UInt8]? {
        var four = in_addr()
        if inet_pton(AF_INET, text, &four) == 1 { return withUnsafeBytes(of: four) { Array($0) } }
        var six = in6_addr()
        guard inet_pton(AF_INET6, text, &six) == 1 else { return nil }
        let bytes = withUnsafeBytes(of: six) { Array($0) }
        let isFour = bytes.prefix(12).elementsEqual(
            [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF] as [UInt8])
        return isFour ? Array(bytes.suffix(4)) : bytes
    }
}

/// The proxies before a listener, whose word is taken for whom they pass a request on for: without them
/// all clients behind one would be one address, and share what a single address may have.
package struct TrustedProxies: Sendable {
    package static let header = "x-forwarded-for"
    /// Further hops are not looked at.
    private static let hopsMax = 16

    private let ranges: [AddressRange]

    package init(_ ranges: [AddressRange] = []) { self.ranges = ranges }

    func contains(_ address: String?) -> Bool {
        guard !ranges.isEmpty, let bytes = address.flatMap(AddressRange.bytes) else { return false }
        return ranges.contains { $0.contains(bytes) }
    }

    /// The address that a request comes from: the last one that no trusted proxy has, since a client may
    /// write whatever it likes before that.
    ///
    /// - Parameters:
    ///   - peer: the other end of the connection.
    ///   - forwardedFor: the values of the header, in their order.
    func client(of peer: String?, forwardedFor: [String]) -> String? {
        guard contains(peer) else { return peer }
        var client = peer
        let hops = forwardedFor.flatMap { $0.split(separator: ",") }
        for hop in hops.suffix(Self.hopsMax).reversed() {
            let address = hop.trimming { $0 == " " || $0 == "\t" }
            // What is no address was not written by a proxy that is worth trusting.
            guard AddressRange.bytes(of: address) != nil else { return client }
            client = address
            guard contains(address) else { return client }
        }
        return client
    }
}

extension Substring {
    fileprivate func trimming(_ isBlank: (Character) -> Bool) -> String {
        guard let first = firstIndex(where: { !isBlank($0) }),
            let last = lastIndex(where: { !isBlank($0) })
        else { return "" }
        return String(self[first...last])
    }
}
