// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import COpenSSL

/// HMAC (RFC 2104) with SHA-256.
package enum HMACSHA256 {
    package static let bytes = 32

    package static func of(_ message: [UInt8], key: [UInt8]) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: bytes) { output, count in
            var written: CUnsignedInt = 0
            // Fails only for want of memory.
            let code = HMAC(
                EVP_sha256(), key, CInt(key.count), message, message.count, output.baseAddress,
                &written)
            precondition(code != nil && written == CUnsignedInt(bytes), "HMAC: out of memory")
            count = bytes
        }
    }
}

/// Comparison of secrets.
package enum ConstantTime {
    /// Takes the same time wherever the two differ. Their lengths are no secret.
    package static func isEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        left.count == right.count && CRYPTO_memcmp(left, right, left.count) == 0
    }
}

/// Bytes that nobody can guess, from OpenSSL's generator for private values.
package enum RandomBytes {
    package static func make(_ count: Int) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: count) { output, written in
            let code = RAND_priv_bytes(output.baseAddress, CInt(count))
            // Anything else than random bytes would be a secret that others know.
            precondition(code == 1, "RAND_priv_bytes: no randomness")
            written = count
        }
    }
}
