// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Curl
internal import Nghttp2
internal import OpenSSL
internal import Rdkafka

/// The version of this program, and those of the libraries that determine its behaviour.
package enum Version {
    package static let number = "0.1.0"

    /// The first twelve digits of the commit, followed by "-dirty" if it was built from changed
    /// files; "unknown" for a build outside the repository.
    package static var commit: String { buildCommit }

    /// A shared library that the process has loaded.
    package struct Library {
        package let name: String
        /// The version that the library reports at run time.
        let loaded: String
        /// The version in the library's header when this program was compiled.
        let compiled: String

        /// The loaded version, with the compiled one if an upgrade or another machine has a
        /// different library. Such a difference is the first suspect in a bug report.
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

    /// The version in libcurl's text, such as "libcurl/7.88.1 OpenSSL/3.0.17 …".
    private static var curl: String {
        String(CurlLibrary.version.prefix { $0 != " " }.drop { $0 != "/" }.dropFirst())
    }

    /// Program, version and commit in one line, for a log or a crash report.
    package static func line(of program: String) -> String { "\(program) \(number) (\(commit))" }

    /// The text that `--version` prints.
    package static func text(of program: String) -> String {
        ([line(of: program)] + libraries.map { "\($0.name) \($0.version)" })
            .joined(separator: "\n")
    }
}
