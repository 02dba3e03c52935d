// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Foundation
package import Logging
internal import OpenSSL
internal import Synchronization

/// A listener's certificate and its key, from two PEM files. They are looked at again every few
/// seconds, as connections come, so that a renewed certificate needs no restart.
package final class ListenerCertificate: Sendable {
    private struct Stamp: Equatable {
        var modified: Date?
        var size: Int?
        var inode: Int?
    }

    private struct State {
        var context: TLSContext
        var stamps: [Stamp]
        var lookAt: ContinuousClock.Instant
    }

    private let certificateFile: String
    private let keyFile: String
    private let logger: Logger
    private let state: Mutex<State>

    private static let interval = Duration.seconds(10)

    /// - Throws: an error that says which file cannot be used, and why.
    package init(certificateFile: String, keyFile: String, logger: Logger) throws {
        self.certificateFile = certificateFile
        self.keyFile = keyFile
        self.logger = logger
        state = Mutex(
            State(
                context: try Self.context(certificateFile, keyFile),
                stamps: [certificateFile, keyFile].map(Self.stamp),
                lookAt: .now + Self.interval))
    }

    /// The context for a new connection.
    var current: TLSContext {
        state.withLock { state in
            if ContinuousClock.now >= state.lookAt {
                state.lookAt = .now + Self.interval
                renew(&state)
            }
            return state.context
        }
    }

    private func renew(_ state: inout State) {
        let stamps = [certificateFile, keyFile].map(Self.stamp)
        guard stamps != state.stamps else { return }
        state.stamps = stamps
        do {
            state.context = try Self.context(certificateFile, keyFile)
            logger.notice(
                "a new certificate is presented", metadata: ["file": "\(certificateFile)"])
        } catch {
            logger.warning(
                "a new certificate cannot be used, so the one before stays",
                metadata: ["file": "\(certificateFile)", "cause": "\(error)"])
        }
    }

    private static func stamp(_ file: String) -> Stamp {
        let path = URL(fileURLWithPath: file).resolvingSymlinksInPath().path
        let attributes = try? FileManager.default.attributesOfItem(atPath: path)
        return Stamp(
            modified: attributes?[.modificationDate] as? Date, size: attributes?[.size] as? Int,
            inode: attributes?[.systemFileNumber] as? Int)
    }

    private static func context(_ certificateFile: String, _ keyFile: String) throws -> TLSContext {
        do {
            return try TLSContext.plainServer(
                certificatePEM: String(contentsOfFile: certificateFile, encoding: .utf8),
                keyPEM: String(contentsOfFile: keyFile, encoding: .utf8))
        } catch {
            throw UnusableCertificate(file: certificateFile, keyFile: keyFile, cause: "\(error)")
        }
    }
}

/// The error for a certificate that a listener cannot present.
struct UnusableCertificate: Error, CustomStringConvertible {
    var file: String
    var keyFile: String
    var cause: String

    var description: String {
        "the certificate \(file) with the key \(keyFile) cannot be used: \(cause); both must be PEM, "
            + "and belong together"
    }
}
