// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

/// The words of one command, taken from the left. Each method that takes a word throws an error
/// that says what it expected.
struct CommandWords {
    private let words: [Substring]
    private var taken = 0

    init(_ line: String) { words = line.split(whereSeparator: \.isWhitespace) }

    var peek: String? { taken < words.count ? String(words[taken]) : nil }

    /// An error about the word that was taken last.
    func error(_ problem: String, remedy: String) -> CommandError {
        CommandError(word: max(1, taken), problem: problem, remedy: remedy)
    }

    func end() throws(CommandError) {
        guard let word = peek else { return }
        throw CommandError(
            word: taken + 1, problem: "'\(word)' is one word too many", remedy: "leave it out")
    }

    mutating func next(_ wanted: String) throws(CommandError) -> String {
        guard let word = peek else {
            throw CommandError(word: taken + 1, problem: "nothing", remedy: "give \(wanted)")
        }
        taken += 1
        return word
    }

    /// Takes the next word if it is this one.
    mutating func skip(_ word: String) -> Bool {
        guard peek == word else { return false }
        taken += 1
        return true
    }

    mutating func choice(_ words: [String]) throws(CommandError) -> String {
        let wanted = words.joined(separator: " or ")
        let word = try next(wanted)
        guard words.contains(word) else { throw refusal(word, wanted) }
        return word
    }

    mutating func onOrOff() throws(CommandError) -> Bool { try choice(["on", "off"]) == "on" }

    mutating func number(
        _ wanted: String, in range: ClosedRange<Int>
    ) throws(CommandError) -> Int {
        let wanted = "\(wanted) from \(range.lowerBound) to \(range.upperBound)"
        let word = try next(wanted)
        guard let number = Int(word), range.contains(number) else { throw refusal(word, wanted) }
        return number
    }

    mutating func range(
        _ wanted: String, in bounds: ClosedRange<Int>
    ) throws(CommandError) -> ClosedRange<Int> {
        let wanted = "\(wanted) as N..N, from \(bounds.lowerBound) to \(bounds.upperBound)"
        let word = try next(wanted)
        guard let (low, high) = Self.halves(word), let low = Int(low), let high = Int(high),
            low <= high, bounds.contains(low), bounds.contains(high)
        else { throw refusal(word, wanted) }
        return low...high
    }

    // MARK: Times

    private static let timeForm = "a time such as 250ms, 1.5s, 20m or 2h (at most 24h)"

    mutating func time() throws(CommandError) -> Duration {
        let word = try next(Self.timeForm)
        guard let time = Self.time(word) else { throw refusal(word, Self.timeForm) }
        return time
    }

    /// Takes a time in whole seconds, in which provider tokens are dated.
    mutating func seconds() throws(CommandError) -> Duration {
        let time = try time()
        guard time.components.attoseconds == 0 else {
            throw error("provider tokens are dated in seconds", remedy: "give whole seconds")
        }
        return time
    }

    mutating func timeOrOff() throws(CommandError) -> Duration {
        skip("off") ? .zero : try time()
    }

    mutating func timeRange() throws(CommandError) -> ClosedRange<Duration> {
        let wanted = "two times such as 10ms..250ms"
        let word = try next(wanted)
        guard let (low, high) = Self.halves(word), let low = Self.time(low),
            let high = Self.time(high), low <= high
        else { throw refusal(word, wanted) }
        return low...high
    }

    private static func halves(_ word: String) -> (String, String)? {
        guard let dots = word.firstRange(of: "..") else { return nil }
        return (String(word[..<dots.lowerBound]), String(word[dots.upperBound...]))
    }

    /// The units. Each ends in a letter that no number contains, and "ms" precedes "s".
    private static let units: [(suffix: String, seconds: Double)] = [
        ("ms", 0.001), ("s", 1), ("m", 60), ("h", 3600),
    ]

    private static func time(_ word: String) -> Duration? {
        guard let unit = units.first(where: { word.hasSuffix($0.suffix) }) else { return nil }
        let digits = word.dropLast(unit.suffix.count)
        // `Double` also reads 1e3, inf and nan.
        guard digits.allSatisfy({ $0.isASCII && $0.isNumber || $0 == "." }),
            let count = Double(digits), count * unit.seconds <= 24 * 3600
        else { return nil }
        return .seconds(count * unit.seconds)
    }

    // MARK: Answers

    /// Takes a reason, which must need no escaping in JSON.
    mutating func reason() throws(CommandError) -> String {
        let word = try next("a reason")
        return try reason(word)
    }

    private func reason(_ word: String) throws(CommandError) -> String {
        let isPlain = word.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "-") }
        guard isPlain, !word.isEmpty, word.utf8.count <= 64 else {
            throw refusal(word, "a reason of at most 64 letters, digits and hyphens")
        }
        return word
    }

    mutating func scriptedAnswer() throws(CommandError) -> ScriptedAnswer {
        let wanted = "STATUS, STATUS:REASON, STATUS:html, reset:CODE or silence"
        let word = try next(wanted)
        if word == "silence" { return .silence }
        let parts = word.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            .map(String.init)
        if parts[0] == "reset", parts.count == 2 { return .reset(try errorCode(parts[1])) }
        guard let status = UInt16(parts[0]), (200...599).contains(status) else {
            throw refusal(word, wanted)
        }
        guard parts.count == 2 else { return .emptyBody(status) }
        let reason = try reason(parts[1])
        if reason == "html" { return .html(status) }
        return status == 410 ? .gone(reason, .fromNow(.zero)) : .reason(status, reason)
    }

    func errorCode(_ word: String) throws(CommandError) -> UInt32 {
        if let index = HTTP2ErrorCode.names.firstIndex(of: word) { return UInt32(index) }
        guard let code = UInt32(word), code < HTTP2ErrorCode.names.count else {
            throw refusal(word, "an HTTP/2 error code such as CANCEL, or 0 to 13")
        }
        return code
    }

    mutating func death() throws(CommandError) -> ScriptedTimestamp {
        switch try choice(["none", "before", "after"]) {
        case "none": .absent
        case "before": .fromNow(.zero - (try time()))
        default: .fromNow(try time())
        }
    }

    /// Takes a percentage as a share from 0 to 1.
    mutating func share() throws(CommandError) -> Double {
        let wanted = "a share such as 5% or 0.1%"
        let word = try next(wanted)
        guard word.hasSuffix("%"), let percent = Double(word.dropLast()),
            (0...100).contains(percent)
        else { throw refusal(word, wanted) }
        return percent / 100
    }

    mutating func hexadecimal() throws(CommandError) -> String {
        let wanted = "a device token in hexadecimal"
        let word = try next(wanted)
        guard word.utf8.allSatisfy({ HeaderText.isHexDigit($0) }) else {
            throw refusal(word, wanted)
        }
        return word.lowercased()
    }

    private func refusal(_ word: String, _ wanted: String) -> CommandError {
        error("'\(word)' will not do", remedy: "give \(wanted)")
    }
}

/// The error codes of HTTP/2 (RFC 9113, section 7).
enum HTTP2ErrorCode {
    static let cancel: UInt32 = 8

    /// The names, in the order of the codes from 0.
    static let names = [
        "NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT",
        "STREAM_CLOSED", "FRAME_SIZE_ERROR", "REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR",
        "CONNECT_ERROR", "ENHANCE_YOUR_CALM", "INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED",
    ]
}
