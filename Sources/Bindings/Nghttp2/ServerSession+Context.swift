// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import CNghttp2

/// What the callbacks of one server session share; nghttp2's user data.
struct ServerContext {
    // SAFETY: `ServerSession.init` demands that it outlive the session. A counted reference would
    // cost two atomic operations in each of a request's callbacks.
    unowned(unsafe) let requests: any ServerRequests

    /// 8000, as APNs announced in 2021 for the sum of names, values and 32 bytes a field.
    static let headerBytesMax = 8000
    /// 8000 / 32: no list within the bound has more fields.
    static let headerCountMax = 250

    /// The request whose header block is being read; negative while none is, or a refused one.
    var current = -1
    private let fieldBytes: UnsafeMutablePointer<UInt8>
    private let fieldEnds: UnsafeMutablePointer<UInt32>
    private var fieldBytesUsed = 0
    private var fieldCount = 0

    /// What nghttp2 gave last and `serialise` has not moved yet. nghttp2 keeps it until it is
    /// asked for more.
    var chunk = UnsafeBufferPointer<UInt8>(start: nil, count: 0)
    private let settingsFrame: UnsafeMutablePointer<UInt8>

    /// The bodies of answers that are not sent yet; error answers only, so usually none.
    var bodies: [Int32: AnswerBody] = [:]

    init(requests: any ServerRequests) {
        self.requests = requests
        fieldBytes = .allocate(capacity: Self.headerBytesMax)
        fieldEnds = .allocate(capacity: 2 * Self.headerCountMax)
        settingsFrame = .allocate(capacity: Self.settingsFrameBytes)
    }

    func free() {
        fieldBytes.deallocate()
        fieldEnds.deallocate()
        settingsFrame.deallocate()
    }

    // MARK: A header block

    mutating func beginBlock(_ request: Int) {
        current = request
        fieldBytesUsed = 0
        fieldCount = 0
    }

    /// Adds a header to the block; false when the block exceeds what was announced.
    mutating func append(
        _ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>
    ) -> Bool {
        let room = Self.headerBytesMax &- fieldBytesUsed
        guard fieldCount < Self.headerCountMax, name.count &+ value.count <= room else {
            return false
        }
        append(name, end: 2 &* fieldCount)
        append(value, end: 2 &* fieldCount &+ 1)
        fieldCount &+= 1
        return true
    }

    private mutating func append(_ part: UnsafeBufferPointer<UInt8>, end index: Int) {
        if let start = part.baseAddress {
            (fieldBytes + fieldBytesUsed).update(from: start, count: part.count)
        }
        fieldBytesUsed &+= part.count
        fieldEnds[index] = UInt32(truncatingIfNeeded: fieldBytesUsed)
    }

    var block: HeaderBlock {
        HeaderBlock(bytes: fieldBytes, ends: fieldEnds, count: fieldCount)
    }

    // MARK: A chunk on its way out

    /// Stands for SETTINGS_MAX_CONCURRENT_STREAMS until the frame is on its way: an identifier
    /// that nghttp2 does not know and so neither checks nor enforces.
    static let streamLimitMark: Int32 = 0xF0F0
    /// A frame header and two entries, the most that `ServerSession` submits.
    private static let settingsFrameBytes = 9 + 2 * 6

    /// Takes a chunk of nghttp2's, which is always one whole frame; SETTINGS of ours get their true
    /// identifier.
    mutating func take(_ frame: UnsafeBufferPointer<UInt8>) {
        chunk = frame
        guard frame.count >= 15, frame.count <= Self.settingsFrameBytes,
            UInt32(frame[3]) == NGHTTP2_SETTINGS.rawValue, let start = frame.baseAddress
        else { return }
        settingsFrame.update(from: start, count: frame.count)
        for entry in stride(from: 9, to: frame.count, by: 6)
        where frame[entry] == 0xF0 && frame[entry + 1] == 0xF0 {
            settingsFrame[entry] = 0
            settingsFrame[entry + 1] = UInt8(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS.rawValue)
        }
        chunk = UnsafeBufferPointer(start: settingsFrame, count: frame.count)
    }

    mutating func moveChunk(to buffer: UnsafeMutableRawBufferPointer) -> Int {
        let count = min(chunk.count, buffer.count)
        guard count > 0, let target = buffer.baseAddress, let source = chunk.baseAddress else {
            return 0
        }
        target.copyMemory(from: source, byteCount: count)
        chunk = UnsafeBufferPointer(rebasing: chunk[count...])
        return count
    }
}

/// The body of an answer and how much of it is sent.
struct AnswerBody {
    let bytes: [UInt8]
    var sent = 0
}
