// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Glibc
internal import LinuxIO
package import Rdkafka

extension EmbeddedKafka {
    package struct Options: Sendable {
        /// How many partitions each topic has.
        package var topics: [String: Int]
        package var brokers: Int
        /// A file for the bootstrap list, for processes that cannot read standard output.
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

    /// Runs an embedded Kafka as a process: writes the bootstrap list as its first line, carries
    /// out commands from standard input, and returns at SIGTERM, SIGINT or `quit`. The end of
    /// standard input does not end it.
    ///
    /// It takes over the signals, so the process should do nothing else.
    package static func run(_ options: Options) throws(ProcessError) {
        StopRequests.count([SIGINT, SIGTERM])
        let kafka: EmbeddedKafka
        do {
            kafka = try EmbeddedKafka(topics: options.topics, brokers: options.brokers)
        } catch {
            throw .cluster(error)
        }
        if let path = options.bootstrapFile { try write(kafka.bootstrap, to: path) }
        say(kafka.bootstrap)
        var input = StandardInputLines()
        // A signal may be delivered to a thread of the cluster, and then interrupts no wait here.
        let glance = Duration.milliseconds(100)
        while StopRequests.received == 0, let lines = input.next(waiting: glance) {
            for line in lines where !kafka.obey(line) { return }
        }
        while StopRequests.received == 0 { usleep(UInt32(glance / .microseconds(1))) }
    }

    /// Carries out a line; false for `quit`.
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
