// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Glibc
internal import Logging
internal import PushModel

/// The log for checkers: one NDJSON line for each answer, in a fixed format. Each thread has its
/// own, and all append to the same file; whole lines are written at once, so they never mix.
struct AnswerLog: ~Copyable {
    private let descriptor: CInt
    private var buffer: [UInt8] = []
    private let logger: Logger
    /// Whether a write failed, for instance on a full disk. That is logged once, and the answer log
    /// ends.
    private var hasFailed = false

    /// The size beyond which the buffer is written at once.
    private static let bufferBytesMax = 256 * 1024

    init(path: String, logger: Logger) throws(SimulatorError) {
        descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else { throw .last("cannot open \(path)") }
        self.logger = logger
        // A line is under 1 KiB, unless its topic has the greatest length.
        buffer.reserveCapacity(Self.bufferBytesMax + 16 * 1024)
    }

    deinit { close(descriptor) }

    var isEmpty: Bool { buffer.isEmpty }

    /// - Parameter wallNanoseconds: when the answer was decided, since 1970.
    mutating func append(
        wallNanoseconds: Int64, connection: Int, environment: StaticString,
        request: PendingRequest, answer: SimulatedAnswer
    ) {
        append(#"{"t":"#)
        append(decimal: wallNanoseconds)
        append(#","conn":"#)
        append(decimal: Int64(connection))
        append(#","env":""#)
        append(environment)
        append(#"","topic":""#)
        append(escaping: request.topic)
        append(#"","token":""#)
        append(escaping: request.token)
        append(#"","apnsID":""#)
        buffer.append(contentsOf: request.apnsID)
        append(#"","status":"#)
        append(decimal: Int64(answer.status))
        append(#","reason":""#)
        if !answer.reason.isEmpty { append(escaping: Array(answer.reason.utf8)) }
        appendChannel(request)
        append("\"}\n")
        if buffer.count >= Self.bufferBytesMax { flush() }
    }

    /// What tells a request about a channel from a push to a device, whose lines have no more.
    private mutating func appendChannel(_ request: PendingRequest) {
        let what: StaticString
        switch request.service {
        case .devices: return
        case .broadcasts: what = "broadcast"
        case .channels(.create): what = "createChannel"
        case .channels(.read): what = "readChannel"
        case .channels(.list): what = "listChannels"
        case .channels(.delete): what = "deleteChannel"
        }
        append(#"","request":""#)
        append(what)
    }

    mutating func flush() {
        defer { buffer.removeAll(keepingCapacity: true) }
        guard !hasFailed else { return }
        let failure = buffer.withUnsafeBytes { bytes -> CInt? in
            var written = 0
            while written < bytes.count {
                let count = write(
                    descriptor, bytes.baseAddress! + written, bytes.count - written)
                if count < 0 && errno == EINTR { continue }
                if count <= 0 { return errno }
                written += count
            }
            return nil
        }
        guard let failure else { return }
        hasFailed = true
        logger.error(
            "cannot write the answer log; it ends here",
            metadata: ["errno": .stringConvertible(failure)])
    }

    private mutating func append(_ text: StaticString) {
        buffer.append(
            contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    private mutating func append(decimal value: Int64) {
        precondition(value >= 0, "an answer's time is not before 1970")
        withUnsafeTemporaryAllocation(byteCount: 20, alignment: 1) { digits in
            var rest = value
            var start = digits.count
            repeat {
                start -= 1
                digits[start] = UInt8(0x30 + rest % 10)
                rest /= 10
            } while rest > 0
            buffer.append(contentsOf: digits[start...])
        }
    }

    /// Appends a header value, which may contain anything. Bytes that JSON does not allow as they
    /// are become `\u00XX`.
    private mutating func append(escaping text: [UInt8]) {
        let isPlain = text.allSatisfy { $0 >= 0x20 && $0 < 0x7F && $0 != 0x22 && $0 != 0x5C }
        if isPlain { return buffer.append(contentsOf: text) }
        for byte in text {
            if byte >= 0x20 && byte < 0x7F && byte != 0x22 && byte != 0x5C {
                buffer.append(byte)
            } else {
                append("\\u00")
                buffer.append(Hexadecimal.digit(byte >> 4))
                buffer.append(Hexadecimal.digit(byte & 15))
            }
        }
    }
}
