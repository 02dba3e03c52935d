// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import LinuxIO
internal import Logging
internal import Pipeline
internal import PushModel
internal import Synchronization

/// The file in which a shadow notes each push that would have been sent, a line of JSON each. A thread
/// of its own writes it: the planner never waits for a disk, and lines for which there is no room in
/// memory are counted and left out.
final class ShadowLog: Sendable {
    private struct State {
        var lines: [UInt8] = []
        var isClosing = false
        var hasEnded = false
        var written = 0
        var lost = 0
        /// How many lines are in `lines`.
        var waiting = 0
    }

    private let state = Mutex(State())
    private let path: String
    private let logger: Logger

    /// The most bytes that wait to be written.
    private static let waitingBytesMax = 8 << 20
    private static let interval = Duration.milliseconds(100)

    /// Opens the file, and begins to write.
    ///
    /// - Parameter bytesMax: of the file and the one before it together.
    init(path: String, bytesMax: Int, logger: Logger) throws(SystemError) {
        self.path = path
        self.logger = logger
        let file = ShadowFile(try AppendedFile(path: path, bytesMax: bytesMax / 2))
        try NamedThread.detach(name: "shadow-log") { self.write(to: file) }
    }

    /// How many lines are in the file, and how many are not, since the start.
    var counts: (written: Int, lost: Int) { state.withLock { ($0.written, $0.lost) } }

    func append(_ push: PushDescription, at time: WallTime) {
        let line = Self.line(push, at: time)
        state.withLock { state in
            guard state.lines.count + line.utf8.count < Self.waitingBytesMax else {
                state.lost += 1
                return
            }
            state.lines.append(contentsOf: line.utf8)
            state.lines.append(UInt8(ascii: "\n"))
            state.waiting += 1
        }
    }

    /// Writes what is left, for at most this long.
    func close(within timeout: Duration) {
        state.withLock { $0.isClosing = true }
        let deadline = ContinuousClock.now + timeout
        while ContinuousClock.now < deadline, !state.withLock({ $0.hasEnded }) {
            NamedThread.sleep(.milliseconds(10))
        }
    }

    /// The line of one push, without its end.
    static func line(_ push: PushDescription, at time: WallTime) -> String {
        var members: [(String, JSONText)] = [
            ("at", .string(time.rfc3339)),
            ("tokenID", .string(push.tokenID)),
            ("app", .string(push.app)), ("environment", .string(push.environment.name)),
            ("class", .string(push.tokenClass.name)), ("type", .string(push.type.name)),
            ("apnsID", .string(push.apnsID.text)),
        ]
        func add(_ name: String, _ text: String) {
            if !text.isEmpty { members.append((name, .string(text))) }
        }
        add("subject", String(decoding: push.subject, as: UTF8.self))
        add("collapseID", String(decoding: push.collapseID, as: UTF8.self))
        add("event", push.eventID ?? "")
        add(
            "source",
            push.event.map { "\($0.topic)/\($0.partition)/\($0.offset)" } ?? "")
        return JSONText.object(members).line
    }

    // MARK: The thread

    private func write(to file: ShadowFile) {
        var hasFailed = false
        while true {
            let (lines, count, isClosing) = state.withLock { state in
                defer { (state.lines, state.waiting) = ([], 0) }
                return (state.lines, state.waiting, state.isClosing)
            }
            assert((count == 0) == lines.isEmpty, "each line that waits is counted")
            if count > 0 {
                do throws(SystemError) {
                    try file.append(lines)
                    state.withLock { $0.written += count }
                    hasFailed = false
                } catch {
                    state.withLock { $0.lost += count }
                    if !hasFailed {
                        logger.error(
                            "the shadow log cannot be written: its lines are lost meanwhile",
                            metadata: ["file": "\(path)", "cause": "\(error)"])
                    }
                    hasFailed = true
                }
            }
            if isClosing, count == 0 { break }
            if !isClosing { NamedThread.sleep(Self.interval) }
        }
        state.withLock { $0.hasEnded = true }
    }
}

/// The file in the hands of the thread that writes it.
private final class ShadowFile: @unchecked Sendable {
    // SAFETY: made by the one who starts the thread, and used by that thread alone.
    private let file: AppendedFile

    init(_ file: AppendedFile) { self.file = file }

    func append(_ lines: [UInt8]) throws(SystemError) {
        var failure: SystemError?
        lines.withUnsafeBytes { bytes in
            do throws(SystemError) { try file.append(bytes) } catch { failure = error }
        }
        if let failure { throw failure }
    }
}
