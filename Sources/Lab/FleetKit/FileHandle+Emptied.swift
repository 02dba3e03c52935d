// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import Foundation

extension FileHandle {
    /// Opens a file to write to from its start, and makes it if it is not there; nil if that cannot be
    /// done.
    ///
    /// `FileManager.createFile` puts another file in the place of one that is there: as root, in that of
    /// a device such as `/dev/null` too.
    package static func emptied(path: String) -> FileHandle? {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
        return descriptor < 0 ? nil : FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    }
}
