// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Foundation

extension Outbox {
    /// A copy of a snapshot for a background upload, which reads its body from a file that nobody may
    /// replace meanwhile.
    package func stage(_ snapshot: Snapshot) throws -> URL {
        try locked {
            let name = "\(millisecondsNow)-\(UUID().uuidString).json"
            let url = uploadsFolder.appendingPathComponent(name)
            try DurableFile.replace(url, with: snapshot.encoded())
            return url
        }
    }

    /// The snapshot that was staged under this name; nil if it is gone.
    package func staged(_ name: String) -> Snapshot? {
        try? read(uploadsFolder.appendingPathComponent(name))
    }

    package func unstage(_ name: String) throws {
        try DurableFile.remove(uploadsFolder.appendingPathComponent(name))
    }

    /// Deletes copies whose upload has not been heard of for two days.
    package func unstageForgotten() throws {
        try locked {
            let oldest = millisecondsNow - 2 * 86_400_000
            let names = try FileManager.default.contentsOfDirectory(atPath: uploadsFolder.path)
            for name in names
            where name.split(separator: "-").first.flatMap({ Int64($0) }) ?? 0 < oldest {
                try unstage(name)
            }
        }
    }
}
