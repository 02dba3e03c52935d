// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import COpenSSL

/// OpenSSL as a whole, which every library of the process shares.
package enum OpenSSLLibrary {
    /// Leaves all of it in place when the process exits. By default an exit handler frees what
    /// every thread uses, and a thread that is still in the middle of a TLS record then reads freed
    /// memory.
    ///
    /// Called before anything else uses OpenSSL: later it has no effect.
    package static func keepUntilExit() {
        OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil)
    }

    /// The version of the library that this process has loaded, such as "3.0.17".
    package static var version: String { String(cString: OpenSSL_version(OPENSSL_VERSION_STRING)) }

    /// The version of the header that this program was compiled against.
    package static var compiledVersion: String { OPENSSL_VERSION_STR }
}
