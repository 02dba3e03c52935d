// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Curl
internal import Nghttp2
internal import OpenSSL
internal import Rdkafka

/// What runs here: our version, and those of the libraries that decide how the process behaves.
package enum Version {
    package static let number = "0.1.0"

    /// Twelve digits, "-dirty" after them when it was built from changed files; "unknown" for a
    /// build outside of the repository.
    package static var commit: String { buildCommit }

    /// A shared library that the process has loaded.
    package struct Library {
        package let name: String
        /// As the library says at run time.
        let loaded: String
        /// As its header said when this program was compiled.
        let compiled: String

        /// The version that runs, and the compiled one where an upgrade or another machine has put
        /// a different library in its place: such a pair is the first suspect in a bug report.
        package var version: String {
            loaded == compiled ? loaded : "\(loaded) (compiled against \(compiled))"
        }
    }

    package static var libraries: [Library] {
        [
            Library(
                name: "librdkafka", loaded: RdkafkaVersion.text,
                compiled: RdkafkaVersion.compiledText),
            Library(
                name: "nghttp2", loaded: Nghttp2Library.version,
                compiled: Nghttp2Library.compiledVersion),
            Library(
                name: "OpenSSL", loaded: OpenSSLLibrary.version,
                compiled: OpenSSLLibrary.compiledVersion),
            Library(name: "libcurl", loaded: curl, compiled: CurlLibrary.compiledVersion),
        ]
    }

    /// "libcurl/7.88.1 OpenSSL/3.0.17 …" is what libcurl says.
    private static var curl: String {
        String(CurlLibrary.version.prefix { $0 != " " }.drop { $0 != "/" }.dropFirst())
    }

    /// On one line, for a log or a crash report.
    package static func line(of program: String) -> String { "\(program) \(number) (\(commit))" }

    /// What `--version` prints.
    package static func text(of program: String) -> String {
        ([line(of: program)] + libraries.map { "\($0.name) \($0.version)" })
            .joined(separator: "\n")
    }
}
