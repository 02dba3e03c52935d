// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Configuration
import FoundationEssentials
import OpenSSL
import PushModel
import RecordFormats
import Worker

/// A registration as Kafka has it, with token IDs in place of tokens.
struct FoundRegistration: Codable, Sendable, Equatable {
    var environment: String
    var app: String
    var installation: String
    var handler: String
    var writtenAt: String
    /// Why no worker of this configuration can read it.
    var problem: String?
    var targets: [Target]

    struct Target: Codable, Sendable, Equatable {
        var `class`: String
        /// Nil for a target that has no token yet.
        var tokenID: String?
        var kinds: [String]
        var subjects: [String]
    }
}

/// Finds registrations in their topic by what the index of a worker does not keep: the names in
/// their keys, and targets that have no token.
struct RegistrationSearch: ~Copyable {
    enum Wanted: Sendable {
        case subject(String)
        case installation(String)
        /// The 16 digits of a token ID.
        case token(String)
    }

    private let wanted: Wanted
    private let app: String?
    private let environment: PushEnvironment?
    private var decoder: RegistrationDecoder
    private var registration = Registration()
    private var matches: [[UInt8]: FoundRegistration] = [:]

    init(
        _ configuration: Configuration, _ wanted: Wanted, app: String?,
        environment: PushEnvironment?
    ) {
        self.wanted = wanted
        self.app = app
        self.environment = environment
        decoder = RegistrationDecoder(routing: WorkerPlan(configuration).routing)
    }

    /// The registrations in force that match, in the order of their keys.
    var found: [FoundRegistration] {
        matches.sorted { $0.key.lexicographicallyPrecedes($1.key) }.map(\.value)
    }

    /// Reads a record. To be called in the order of the topic: the last record of a key counts.
    mutating func record(
        key: UnsafeRawBufferPointer?, value: UnsafeRawBufferPointer?, timestamp: WallTime
    ) {
        guard let key else { return }
        let bytes = Array(key)
        guard let value, let parts = parts(of: bytes), mayMatch(value, parts) else {
            matches[bytes] = nil
            return
        }
        var found = FoundRegistration(
            environment: parts[0], app: parts[1], installation: parts[2], handler: parts[3],
            writtenAt: timestamp.rfc3339,
            targets: ((try? JSONDecoder().decode(Document.self, from: Data(value)))?.targets ?? [])
                .map(\.found))
        do throws(UnreadableRecord) {
            _ = try decoder.decode(
                key: key, value: value, timestamp: timestamp, into: &registration)
        } catch {
            found.problem = error.message
        }
        matches[bytes] = matches(found) ? found : nil
    }

    /// The four parts of a key that is not left out.
    private func parts(of key: [UInt8]) -> [String]? {
        let parts = String(decoding: key, as: UTF8.self)
            .split(separator: "/", omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 4, app == nil || parts[1] == app,
            environment == nil || PushEnvironment(name: parts[0]) == environment
        else { return nil }
        return parts
    }

    /// Whether it is worth while to read the whole value.
    private func mayMatch(_ value: UnsafeRawBufferPointer, _ parts: [String]) -> Bool {
        switch wanted {
        case .installation(let name): parts[2] == name
        case .subject(let subject):
            // A subject may be written with escapes.
            value.contains(UInt8(ascii: "\\")) || value.firstRange(of: subject.utf8) != nil
        case .token: true
        }
    }

    private func matches(_ found: FoundRegistration) -> Bool {
        switch wanted {
        case .installation: true
        case .subject(let subject): found.targets.contains { $0.subjects.contains(subject) }
        case .token(let id): found.targets.contains { $0.tokenID == id }
        }
    }

    private struct Document: Decodable {
        struct Target: Decodable {
            struct Show: Decodable {
                var kind: String?
                var subjects: [String]?
            }

            var `class`: String
            var token: String?
            var shows: [Show]?

            /// Of a channel it is the channel's ID, in base64.
            private var tokenBytes: [UInt8]? {
                token.flatMap { text in
                    self.class == TokenClass.channel.name
                        ? Data(base64Encoded: text).map { Array($0) } : Hexadecimal.decode(text)
                }
            }

            var found: FoundRegistration.Target {
                FoundRegistration.Target(
                    class: self.class,
                    tokenID: tokenBytes.map { bytes in
                        ExplainJSON.tokenID(bytes.withUnsafeBytes { SHA256Digest.prefix(of: $0) })
                    },
                    kinds: (shows ?? []).compactMap(\.kind),
                    subjects: (shows ?? []).flatMap { $0.subjects ?? [] })
            }
        }

        var targets: [Target]
    }
}
