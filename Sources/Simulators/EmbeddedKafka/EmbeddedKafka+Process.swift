// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Glibc
package import Rdkafka
internal import Synchronization

extension EmbeddedKafka {
    package struct Options: Sendable {
        /// How many partitions each topic has.
        package var topics: [String: Int]
        package var brokers: Int
        /// Where to write the bootstrap list too, for those who cannot read standard output.
        package var bootstrapFile: String?

        package init(topics: [String: Int], brokers: Int = 1, bootstrapFile: String? = nil) {
            self.topics = topics
            self.brokers = brokers
            self.bootstrapFile = bootstrapFile
        }
    }

    package enum ProcessError: Error, CustomStringConvertible {
        case cluster(RdkafkaError)
        case unwritable(path: String, errno: CInt)

        package var description: String {
            switch self {
            case .cluster(let error): "the embedded Kafka did not start: \(error)"
            case .unwritable(let path, let errno):
                "cannot write the bootstrap list to \(path): \(String(cString: strerror(errno)))"
            }
        }
    }

    /// The body of a process: writes the bootstrap list as its first line, obeys standard input,
    /// and returns at SIGTERM, SIGINT or `quit`. The end of standard input ends nothing.
    ///
    /// Takes over both signals; call it on the main thread of a process that does nothing else.
    package static func run(_ options: Options) throws(ProcessError) {
        // Before the cluster's threads exist, so that they inherit the mask and only we are woken.
        let signals = StopSignals()
        let kafka: EmbeddedKafka
        do {
            kafka = try EmbeddedKafka(topics: options.topics, brokers: options.brokers)
        } catch {
            throw .cluster(error)
        }
        if let path = options.bootstrapFile { try write(kafka.bootstrap, to: path) }
        say(kafka.bootstrap)
        var input = InputLines()
        while !signals.stopRequested, let lines = input.wait(signals: signals) {
            for line in lines where !kafka.obey(line) { return }
        }
    }

    /// False for `quit`.
    private func obey(_ line: String) -> Bool {
        guard !line.allSatisfy(\.isWhitespace) else { return true }
        guard let command = EmbeddedKafkaCommand(parsing: line) else {
            Self.say("error: not a command: \(line)\n\(Self.commands)")
            return true
        }
        if command == .quit { return false }
        do {
            try perform(command)
            Self.say("ok")
        } catch {
            Self.say("error: \(error)")
        }
        return true
    }

    private static func say(_ text: String) {
        print(text)
        fflush(nil)
    }

    private static func write(_ text: String, to path: String) throws(ProcessError) {
        guard let file = fopen(path, "w") else {
            throw .unwritable(path: path, errno: errno)
        }
        let written = fputs(text + "\n", file)
        guard fclose(file) == 0, written >= 0 else {
            throw .unwritable(path: path, errno: errno)
        }
    }
}

/// Set by a signal handler, for which an atomic is one of the few things it may touch.
private let stopFlag = Atomic<Bool>(false)

/// SIGTERM and SIGINT, delivered only while we wait, so that none comes between the look at the
/// flag and the wait.
private struct StopSignals {
    private(set) var whileWaiting = sigset_t()

    init() {
        stopFlag.store(false, ordering: .relaxed)
        var blocked = sigset_t()
        sigemptyset(&blocked)
        for number in [SIGTERM, SIGINT] {
            sigaddset(&blocked, number)
            signal(number) { _ in stopFlag.store(true, ordering: .relaxed) }
        }
        pthread_sigmask(SIG_BLOCK, &blocked, &whileWaiting)
        sigdelset(&whileWaiting, SIGTERM)
        sigdelset(&whileWaiting, SIGINT)
    }

    var stopRequested: Bool { stopFlag.load(ordering: .relaxed) }
}

/// Standard input in whole lines.
private struct InputLines {
    private var partial: [UInt8] = []
    private var hasEnded = false
    /// A line longer than this is no command; it is cut rather than kept growing.
    private static let lineBytesMax = 4096

    /// Waits for input or a signal. Nil when it is time to stop.
    mutating func wait(signals: StopSignals) -> [String]? {
        var readable = fd_set()
        // Bit 0 is standard input. Without any left, this is a wait for signals alone.
        readable.__fds_bits.0 = hasEnded ? 0 : 1
        var mask = signals.whileWaiting
        let ready = pselect(1, &readable, nil, nil, nil, &mask)
        if signals.stopRequested { return nil }
        guard ready > 0 else { return [] }
        var chunk = [UInt8](repeating: 0, count: Self.lineBytesMax)
        let count = read(STDIN_FILENO, &chunk, chunk.count)
        guard count > 0 else {
            if count == 0 || (errno != EINTR && errno != EAGAIN) { hasEnded = true }
            return []
        }
        return take(chunk[..<count])
    }

    private mutating func take(_ chunk: ArraySlice<UInt8>) -> [String] {
        var lines: [String] = []
        for byte in chunk {
            if byte == UInt8(ascii: "\n") {
                lines.append(String(decoding: partial, as: UTF8.self))
                partial.removeAll()
            } else if partial.count < Self.lineBytesMax {
                partial.append(byte)
            }
        }
        return lines
    }
}
