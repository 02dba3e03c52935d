// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import CZlib

/// Why bytes are no gzip, or no whole one.
package enum GzipError: Error, Hashable, Sendable, CustomStringConvertible {
    case corrupt
    case truncated
    case noMemory

    package var description: String {
        switch self {
        case .corrupt: "it is not gzip, or is damaged"
        case .truncated: "its gzip ends too early: the file is not whole"
        case .noMemory: "there is no memory to expand its gzip"
        }
    }
}

/// Expands gzip (RFC 1952), one member after another as `cat a.gz b.gz` joins them, into a buffer of
/// its own: memory does not depend on what the input expands to.
package struct GzipExpansion: ~Copyable {
    // zlib points from its state back to this structure, so it must not move.
    private let stream: UnsafeMutablePointer<z_stream>
    private let output: UnsafeMutableRawBufferPointer
    private var isWithinMember = false

    private static let outputBytes = 64 << 10

    package init() throws(GzipError) {
        stream = .allocate(capacity: 1)
        stream.initialize(to: z_stream())
        output = .allocate(byteCount: Self.outputBytes, alignment: 16)
        guard CZlib_beginGzip(stream) == Z_OK else { throw .noMemory }
    }

    deinit {
        inflateEnd(stream)
        stream.deallocate()
        output.deallocate()
    }

    /// Lends what these bytes expand to, in pieces of 64 KiB at most.
    package mutating func expand(
        _ input: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) throws -> Void
    ) throws {
        // zlib does not write to its input.
        let bytes = UnsafeMutablePointer(
            mutating: input.baseAddress?.assumingMemoryBound(to: UInt8.self))
        stream.pointee.next_in = bytes
        stream.pointee.avail_in = UInt32(input.count)
        var hasMore = input.count > 0
        while hasMore {
            stream.pointee.next_out = output.baseAddress?.assumingMemoryBound(to: UInt8.self)
            stream.pointee.avail_out = UInt32(output.count)
            isWithinMember = true
            let code = inflate(stream, Z_NO_FLUSH)
            let count = output.count - Int(stream.pointee.avail_out)
            if count > 0 { try body(UnsafeRawBufferPointer(rebasing: output[..<count])) }
            switch code {
            case Z_STREAM_END:
                isWithinMember = false
                guard inflateReset(stream) == Z_OK else { throw GzipError.corrupt }
            case Z_OK, Z_BUF_ERROR: break
            case Z_MEM_ERROR: throw GzipError.noMemory
            default: throw GzipError.corrupt
            }
            // A full output may have more behind it although all input is taken.
            hasMore =
                stream.pointee.avail_in > 0
                || (stream.pointee.avail_out == 0 && code == Z_OK)
        }
    }

    /// To be called after the last bytes.
    package func finish() throws(GzipError) {
        if isWithinMember { throw .truncated }
    }
}
