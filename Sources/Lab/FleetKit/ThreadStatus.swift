// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Foundation

/// A thread's name and how the kernel schedules it, from /proc/PID/task/TID/stat; see proc(5).
package struct ThreadStatus: Equatable, Sendable {
    package let name: String
    /// `idle`, where nice has no say, `batch, nice 10` or `nice 0`.
    package let scheduling: String

    /// - Returns: nil for a text of another form.
    package init?(stat text: String) {
        // The name is in parentheses, and may have spaces and parentheses of its own.
        guard let start = text.firstIndex(of: "("), let end = text.lastIndex(of: ")"),
            start < end
        else { return nil }
        // The first of them is field 3.
        let fields = text[end...].dropFirst().split(separator: " ")
        guard fields.count > Self.policyField - 3 else { return nil }
        name = String(text[text.index(after: start)..<end])
        let nice = "nice \(fields[Self.niceField - 3])"
        scheduling =
            switch fields[Self.policyField - 3] {
            case Self.idlePolicy: "idle"
            case Self.batchPolicy: "batch, \(nice)"
            default: nice
            }
    }

    /// Those of a process, without threads that end meanwhile.
    package static func all(of process: Int32) throws -> [ThreadStatus] {
        let folder = "/proc/\(process)/task"
        return try FileManager.default.contentsOfDirectory(atPath: folder).compactMap { thread in
            let text = try? String(contentsOfFile: "\(folder)/\(thread)/stat", encoding: .utf8)
            return text.flatMap { ThreadStatus(stat: $0) }
        }
    }

    private static let niceField = 19
    private static let policyField = 41
    /// SCHED_BATCH.
    private static let batchPolicy = "3"
    /// SCHED_IDLE.
    private static let idlePolicy = "5"
}
