// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import CNghttp2

/// What the callbacks of one session write and the session's owner reads; nghttp2's user data.
struct ClientContext {
    var settingsArrived = false
    /// The least SETTINGS_HEADER_TABLE_SIZE that has arrived; nil for none.
    var leastTableLimit: UInt32?
    var pingAnswered = false
    var goAway: GoAway?

    /// `:method: POST`, the one header that nghttp2 knows of a request.
    let method: UnsafeMutablePointer<nghttp2_nv>

    /// The `:status` of the header block being read.
    var statusRead: UInt16 = 0
    var retryAfterRead: UInt16 = 0
    /// The stream of the last answer: it usually ends in the next callback, which then needs no
    /// second search in nghttp2's table.
    var recentID: Int32 = 0
    var recentStream: UnsafeMutablePointer<ClientStream>?

    private(set) var ends: UnsafeMutablePointer<StreamEnd>
    var endCount = 0
    private var endCapacity: Int
    var bodies = AnswerBodies()

    init() {
        // 16 KiB of bare answers (10 bytes each) hold 1,638 ends, so this rarely grows.
        endCapacity = 2048
        ends = .allocate(capacity: endCapacity)
        method = .allocate(capacity: 1)
        method.initialize(to: Self.field(":method", "POST"))
    }

    private static func field(_ name: StaticString, _ value: StaticString) -> nghttp2_nv {
        let flags =
            NGHTTP2_NV_FLAG_NO_COPY_NAME.rawValue | NGHTTP2_NV_FLAG_NO_COPY_VALUE.rawValue
        // nghttp2 takes both as mutable and never writes to them.
        return nghttp2_nv(
            name: UnsafeMutablePointer(mutating: name.utf8Start),
            value: UnsafeMutablePointer(mutating: value.utf8Start),
            namelen: name.utf8CodeUnitCount, valuelen: value.utf8CodeUnitCount,
            flags: UInt8(truncatingIfNeeded: flags))
    }

    func free() {
        ends.deallocate()
        method.deallocate()
        bodies.free()
    }

    mutating func append(_ end: StreamEnd) {
        if endCount == endCapacity { grow() }
        ends[endCount] = end
        endCount &+= 1
    }

    /// Removes the reported end of a stream that no longer belongs to the session.
    mutating func withdraw(_ stream: UnsafeMutablePointer<ClientStream>) {
        var kept = 0
        for index in 0..<endCount where ends[index].stream != stream {
            ends[kept] = ends[index]
            kept += 1
        }
        endCount = kept
    }

    mutating func forget(_ stream: UnsafeMutablePointer<ClientStream>) {
        if recentStream == stream {
            recentID = 0
            recentStream = nil
        }
        bodies.release(&stream.pointee.answerBody)
    }

    private mutating func grow() {
        let larger = UnsafeMutablePointer<StreamEnd>.allocate(capacity: endCapacity * 2)
        larger.update(from: ends, count: endCount)
        ends.deallocate()
        ends = larger
        endCapacity *= 2
    }
}

/// Room for the first bytes of the bodies that come with error answers. Grows to one slot for
/// each stream that has such an answer at the same time, so to the stream limit at most.
struct AnswerBodies {
    /// APNs's bodies are under 100 bytes; a proxy's error page is not worth more than this.
    static let bytesMax = 1024
    private static let slotsPerBlock = 16

    private var blocks: [UnsafeMutablePointer<UInt8>] = []
    private var vacant: [Int32] = []

    mutating func append(
        _ bytes: UnsafeBufferPointer<UInt8>, to stream: UnsafeMutablePointer<ClientStream>
    ) {
        if stream.pointee.answerBody < 0 {
            stream.pointee.answerBody = reserve()
            stream.pointee.answerBytes = 0
        }
        let held = Int(stream.pointee.answerBytes)
        let count = min(bytes.count, Self.bytesMax - held)
        guard count > 0 else { return }
        (address(stream.pointee.answerBody) + held).update(from: bytes.baseAddress!, count: count)
        stream.pointee.answerBytes = Int32(held + count)
    }

    func address(_ slot: Int32) -> UnsafeMutablePointer<UInt8> {
        let (block, index) = Int(slot).quotientAndRemainder(dividingBy: Self.slotsPerBlock)
        return blocks[block] + index * Self.bytesMax
    }

    mutating func release(_ slot: inout Int32) {
        guard slot >= 0 else { return }
        vacant.append(slot)
        slot = -1
    }

    func free() {
        for block in blocks { block.deallocate() }
    }

    private mutating func reserve() -> Int32 {
        if vacant.isEmpty {
            let first = Int32(blocks.count * Self.slotsPerBlock)
            blocks.append(.allocate(capacity: Self.slotsPerBlock * Self.bytesMax))
            for index in 0..<Int32(Self.slotsPerBlock) { vacant.append(first + index) }
        }
        return vacant.removeLast()
    }
}
