// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Glibc

/// The memory of this process.
package enum ProcessMemory {
    /// Bytes in RAM; nil where the kernel does not tell.
    package static var residentBytes: Int? {
        let file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { Glibc.close(file) }
        var text = [UInt8](repeating: 0, count: 128)
        let length = read(file, &text, text.count)
        guard length > 0 else { return nil }
        // In pages: the whole size, then what is resident.
        let fields = text[..<length].split(separator: UInt8(ascii: " "))
        guard fields.count > 1, let pages = Int(String(decoding: fields[1], as: UTF8.self)) else {
            return nil
        }
        return pages * sysconf(Int32(_SC_PAGESIZE))
    }
}
