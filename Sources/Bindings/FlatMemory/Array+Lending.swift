// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// What `withUnsafeBytes` and `withUnsafeMutableBytes` are, with the type of the error.
extension [UInt8] {
    package func lend<Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Void
    ) throws(Failure) {
        let result = withUnsafeBytes { bytes in
            Result { () throws(Failure) in try body(bytes) }
        }
        try result.get()
    }

    package mutating func lendMutable<Failure: Error>(
        _ body: (UnsafeMutableRawBufferPointer) throws(Failure) -> Void
    ) throws(Failure) {
        let result = withUnsafeMutableBytes { bytes in
            Result { () throws(Failure) in try body(bytes) }
        }
        try result.get()
    }
}
