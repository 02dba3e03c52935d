// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Glibc

/// Folders whose names nobody can know before.
package enum TemporaryFolder {
    /// Makes a new, empty folder that only its owner can look into (mode 0700), and returns its
    /// path: `parent`/`name`-, and six characters.
    package static func make(in parent: String, named name: String) throws(SystemError) -> String {
        let template = "\(parent)/\(name)-XXXXXX"
        guard let path = strdup(template) else { throw .last("strdup") }
        defer { free(path) }
        guard mkdtemp(path) != nil else { throw .last("mkdtemp \(template)") }
        return String(cString: path)
    }
}
