// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import CCurl

/// The headers of one easy handle's request, rewritten for each request in memory that stays:
/// libcurl copies neither the list nor its text, and reads both until the transfer's end.
package struct HeaderList: ~Copyable {
    /// The most lines; more than any request of ours has.
    private static let linesMax = 16

    private let nodes: UnsafeMutablePointer<curl_slist>
    private var text: UnsafeMutableBufferPointer<UInt8>
    private var starts: [Int] = []
    private var textBytes = 0
    private let suppressedLines: Int
    private let suppressedBytes: Int

    /// - Parameter suppressing: headers that libcurl adds unless it is told not to.
    init(suppressing names: [StaticString]) {
        // A list of none could not be handed over: libcurl follows it from its first node.
        precondition(
            !names.isEmpty && names.count <= Self.linesMax,
            "a list has at least one header and at most its maximum")
        nodes = .allocate(capacity: Self.linesMax)
        nodes.initialize(repeating: curl_slist(), count: Self.linesMax)
        text = .allocate(capacity: 1024)
        starts.reserveCapacity(Self.linesMax)
        suppressedLines = names.count
        var bytes = 0
        for name in names {
            starts.append(bytes)
            bytes += name.utf8CodeUnitCount + 2
        }
        suppressedBytes = bytes
        // A name without a value takes libcurl's own header of that name away.
        for name in names { write(name, Self.colon, UnsafeBufferPointer(start: nil, count: 0)) }
    }

    deinit {
        nodes.deallocate()
        text.deallocate()
    }

    /// Forgets the headers of the request before.
    package mutating func removeAll() {
        starts.removeLast(starts.count - suppressedLines)
        textBytes = suppressedBytes
    }

    /// Adds a header. The value must not be empty, which would take the header away, nor hold a
    /// control character, with which it could smuggle in another.
    package mutating func append(_ name: StaticString, _ value: UnsafeBufferPointer<UInt8>) {
        precondition(starts.count < Self.linesMax, "a list has room for each header that is added")
        precondition(
            value.count > 0 && value.allSatisfy { $0 >= 0x20 && $0 != 0x7F },
            "the value of \(name) is not empty and has no control characters")
        starts.append(textBytes)
        write(name, Self.colonAndSpace, value)
    }

    /// The lines as libcurl finds them when it follows the list.
    package var lines: [String] {
        var lines: [String] = []
        var next: UnsafeMutablePointer<curl_slist>? = link()
        while let node = next {
            lines.append(String(cString: node.pointee.data))
            next = node.pointee.next
        }
        return lines
    }

    /// The first node; the same at every call.
    func link() -> UnsafeMutablePointer<curl_slist> {
        for (index, start) in starts.enumerated() {
            let line = UnsafeMutableRawPointer(text.baseAddress! + start)
            nodes[index].data = line.assumingMemoryBound(to: CChar.self)
            nodes[index].next = index + 1 < starts.count ? nodes + index + 1 : nil
        }
        return nodes
    }

    private static let colon: StaticString = ":"
    private static let colonAndSpace: StaticString = ": "

    private mutating func write(
        _ name: StaticString, _ separator: StaticString, _ value: UnsafeBufferPointer<UInt8>
    ) {
        let bytes = name.utf8CodeUnitCount + separator.utf8CodeUnitCount + value.count + 1
        if textBytes + bytes > text.count { grow(by: bytes) }
        assert(textBytes + bytes <= text.count, "a header ends within the list's text")
        put(UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount))
        put(UnsafeBufferPointer(start: separator.utf8Start, count: separator.utf8CodeUnitCount))
        put(value)
        text[textBytes] = 0
        textBytes += 1
    }

    private mutating func put(_ bytes: UnsafeBufferPointer<UInt8>) {
        guard let source = bytes.baseAddress else { return }
        (text.baseAddress! + textBytes).update(from: source, count: bytes.count)
        textBytes += bytes.count
    }

    private mutating func grow(by bytes: Int) {
        let larger = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: 2 * text.count + bytes)
        larger.baseAddress!.update(from: text.baseAddress!, count: textBytes)
        text.deallocate()
        text = larger
    }
}
