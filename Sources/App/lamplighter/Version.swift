// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Curl
import Nghttp2
import OpenSSL
import Rdkafka

/// What runs here: this program's version, and those of the libraries that decide how it behaves.
enum Version {
    static let number = "0.1.0"

    /// Twelve digits, "-dirty" after them when it was built from changed files; "unknown" for a
    /// build outside of the repository.
    static var commit: String { buildCommit }

    /// As the libraries say at run time: they are shared ones, and may differ from those that the
    /// program was built with.
    static var libraries: [(name: String, version: String)] {
        [
            ("librdkafka", RdkafkaVersion.text), ("nghttp2", Nghttp2Library.version),
            ("OpenSSL", OpenSSLLibrary.version), ("libcurl", curl),
        ]
    }

    /// "libcurl/7.88.1 OpenSSL/3.0.17 …" is what libcurl says.
    private static var curl: String {
        String(CurlLibrary.version.prefix { $0 != " " }.drop { $0 != "/" }.dropFirst())
    }

    /// On one line, for a log or a crash report.
    static var line: String { "lamplighter \(number) (\(commit))" }

    /// What `--version` prints.
    static var text: String {
        ([line] + libraries.map { "\($0.name) \($0.version)" }).joined(separator: "\n")
    }
}
