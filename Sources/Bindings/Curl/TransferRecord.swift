// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import CCurl

/// What libcurl's callbacks write about one transfer, at a fixed address.
///
/// SAFETY: owned by the `EasyHandle` and freed after its CURL. The callbacks run on the thread that
/// calls into the multi handle.
struct TransferRecord {
    let position: Int
    /// The connection it was made for.
    let context: UnsafeMutablePointer<ConnectionContext>
    private(set) var tag: UInt32 = 0
    private(set) var wasDispatched = false
    let answer: UnsafeMutableRawBufferPointer
    private(set) var answerBytes = 0
    let errorText: UnsafeMutablePointer<CChar>

    /// APNs's bodies are under 100 bytes; a proxy's error page is not worth more than this.
    private static let answerBytesMax = 1024

    init(position: Int, context: UnsafeMutablePointer<ConnectionContext>) {
        self.position = position
        self.context = context
        answer = .allocate(byteCount: Self.answerBytesMax, alignment: 16)
        errorText = .allocate(capacity: Int(CURL_ERROR_SIZE))
        errorText.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
    }

    func free() {
        answer.deallocate()
        errorText.deallocate()
    }

    mutating func begin(tag: UInt32) {
        self.tag = tag
        wasDispatched = false
        answerBytes = 0
        errorText[0] = 0
    }

    static func of(_ easy: UnsafeMutableRawPointer) -> UnsafeMutablePointer<TransferRecord> {
        var text: UnsafeMutablePointer<CChar>?
        let code = CCurl_getPrivate(easy, &text)
        precondition(code == CURLE_OK, "libcurl: \(CurlCode(code))")
        return record(UnsafeMutableRawPointer(text))
    }

    /// The connection is up and the request is about to be sent on it. A second time would be
    /// libcurl's own retry of a request that the server may have.
    static let dispatch: curl_prereq_callback = { user, _, _, _, _ in
        let record = record(user)
        record.pointee.context.pointee.isEstablished = true
        guard !record.pointee.wasDispatched else { return CURL_PREREQFUNC_ABORT }
        record.pointee.wasDispatched = true
        return CURL_PREREQFUNC_OK
    }

    /// Keeps the first bytes and lets the rest pass.
    static let receive: curl_write_callback = { bytes, size, count, user in
        let record = record(user)
        let held = record.pointee.answerBytes
        let kept = min(size * count, answerBytesMax - held)
        if kept > 0, let bytes {
            record.pointee.answer.baseAddress!.advanced(by: held)
                .copyMemory(from: bytes, byteCount: kept)
            record.pointee.answerBytes = held + kept
        }
        return size * count
    }

    private static func record(
        _ user: UnsafeMutableRawPointer?
    ) -> UnsafeMutablePointer<TransferRecord> {
        user!.assumingMemoryBound(to: TransferRecord.self)
    }
}
