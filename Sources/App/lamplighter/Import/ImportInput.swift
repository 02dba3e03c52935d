// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Entrypoint
import Foundation
import Importing
import Zlib

/// Reads files one after another in pieces, and expands those that are gzip.
struct ImportInput {
    private let files: [String]
    /// How many bytes the files have; nil if one is standard input.
    let bytes: Int?

    private static let pieceBytes = 64 << 10

    init(_ files: [String]) throws {
        self.files = files
        var sum: Int? = 0
        for file in files where file != "-" {
            let attributes = try? FileManager.default.attributesOfItem(atPath: file)
            guard let size = attributes?[.size] as? Int else {
                throw Failure(.unreadableInput, "\(file) does not exist or cannot be read")
            }
            sum? += size
        }
        bytes = files.contains("-") ? nil : sum
    }

    /// Lends each file's content in pieces; an empty piece is the file's end.
    ///
    /// - Parameter body: is also given the name of the file, and how many bytes of all files have been
    ///   read.
    func read(
        _ body: (_ file: String, _ piece: UnsafeRawBufferPointer, _ done: Int) throws -> Void
    ) throws {
        var done = 0
        for file in files {
            let handle = try FileHandle.input(file)
            defer { if file != "-" { try? handle.close() } }
            var gzip: GzipExpansion?
            var isFirst = true
            while let piece = try handle.read(upToCount: Self.pieceBytes), !piece.isEmpty {
                if isFirst {
                    try Self.refuseArchive(piece, file)
                    if piece.starts(with: [0x1F, 0x8B]) { gzip = try Self.expansion(of: file) }
                    isFirst = false
                }
                done += piece.count
                try piece.withUnsafeBytes { bytes in
                    guard gzip != nil else { return try body(file, bytes, done) }
                    do {
                        try gzip!.expand(bytes) { try body(file, $0, done) }
                    } catch let error as GzipError {
                        throw Failure(.unreadableInput, "\(file): \(error)")
                    }
                }
            }
            if gzip != nil {
                do throws(GzipError) { try gzip!.finish() } catch {
                    throw Failure(.unreadableInput, "\(file): \(error)")
                }
            }
            try body(file, UnsafeRawBufferPointer(start: nil, count: 0), done)
        }
    }

    private static func expansion(of file: String) throws -> GzipExpansion {
        do throws(GzipError) { return try GzipExpansion() } catch {
            throw Failure(.unavailable, "\(file): \(error)")
        }
    }

    private static func refuseArchive(_ piece: Data, _ file: String) throws {
        guard piece.starts(with: [0x50, 0x4B, 0x03, 0x04]) else { return }
        throw Failure(
            .unreadableInput,
            "\(file) is a zip archive: give what it has on standard input, as unzip -p does")
    }
}
