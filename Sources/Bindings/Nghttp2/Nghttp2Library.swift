// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import CNghttp2

package enum Nghttp2Library {
    /// The version of the library that this process has loaded, such as "1.52.0".
    package static var version: String { String(cString: nghttp2_version(0).pointee.version_str) }

    /// The version of the header that this program was compiled against.
    package static var compiledVersion: String { NGHTTP2_VERSION }
}
