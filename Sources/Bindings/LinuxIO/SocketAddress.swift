// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import CLinux
internal import Glibc

/// An IPv4 or IPv6 address with its port, ready for `connect`.
package struct SocketAddress: Hashable, Sendable, CustomStringConvertible {
    /// The bytes of a `sockaddr_in` or `sockaddr_in6`.
    package let bytes: [UInt8]

    init(copying address: UnsafePointer<sockaddr>, length: socklen_t) {
        precondition(
            Int(length) >= MemoryLayout<sockaddr_in>.size,
            "an address is long enough to have a port")
        bytes = Array(UnsafeRawBufferPointer(start: address, count: Int(length)))
    }

    /// - Parameter bytes: of a `sockaddr_in` or `sockaddr_in6`.
    package init(bytes: [UInt8]) {
        precondition(
            bytes.count >= MemoryLayout<sockaddr_in>.size,
            "an address is long enough to have a port")
        self.bytes = bytes
    }

    /// 127.0.0.1.
    package static func loopback(port: UInt16) -> SocketAddress {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return withUnsafeBytes(of: &address) { raw in
            SocketAddress(
                copying: raw.baseAddress!.assumingMemoryBound(to: sockaddr.self),
                length: socklen_t(raw.count))
        }
    }

    var family: CInt {
        withPointer { address, _ in CInt(address.pointee.sa_family) }
    }

    package var port: UInt16 {
        // `sin_port` and `sin6_port` lie at the same place, behind the family.
        UInt16(bytes[2]) << 8 | UInt16(bytes[3])
    }

    /// As people write it: `192.0.2.1:443`, `[2001:db8::1]:443`.
    package var description: String {
        family == AF_INET6 ? "[\(host)]:\(port)" : "\(host):\(port)"
    }

    /// Without the port, and without brackets.
    package var host: String {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 64) { buffer in
            withPointer { address, length in
                getnameinfo(
                    address, length, buffer.baseAddress!, socklen_t(buffer.count), nil, 0,
                    NI_NUMERICHOST) == 0 ? String(cString: buffer.baseAddress!) : "?"
            }
        }
    }

    func withPointer<R>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> R) -> R {
        bytes.withUnsafeBytes { raw in
            // An array's storage is aligned for a sockaddr: 16 bytes.
            body(
                raw.baseAddress!.assumingMemoryBound(to: sockaddr.self), socklen_t(raw.count))
        }
    }
}
