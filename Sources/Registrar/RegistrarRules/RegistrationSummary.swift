// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
package import Simdjson

/// What the registrar remembers of a registration's record, apart from its key.
package struct RegistrationSummary: Hashable, Sendable {
    /// The client's count, from 0 to `RegistrationArbiter.sequenceMax`; nil in a record that was not written
    /// over HTTP, and in one whose number no client may have.
    package var sequence: Int64?
    /// The class of its targets; nil if they are of several classes, or if it has none and the
    /// record's header does not say it either.
    package var tokenClass: RegistrationClass?
    /// A hash of the targets, or of the key that an installation is for. A write with the same sequence and
    /// the same hash is a retry.
    package var content: UInt64

    package init(sequence: Int64?, tokenClass: RegistrationClass?, content: UInt64) {
        self.sequence = sequence
        self.tokenClass = tokenClass
        self.content = content
    }

    /// Reads a record's value; nil if it is no registration.
    package init?(value: UnsafeRawBufferPointer, parser: inout JSONParser) {
        guard let record = try? parser.parse(value).object,
            let targets = record["targets"], let elements = targets.array
        else { return nil }
        sequence = record["sequence"]?.integer.flatMap { RegistrationArbiter.sequence($0) }
        if let key = record["attestedKey"]?.string {
            tokenClass = nil
            content = StableHash.hash64(key, seed: 0)
            return
        }
        var classes: Set<RegistrationClass?> = []
        for target in elements {
            let word = target.object?["class"]?.string.map { String(decoding: $0, as: UTF8.self) }
            classes.insert(
                word.flatMap { TokenClass(name: $0) }.flatMap { RegistrationClass($0) })
        }
        tokenClass = classes.count == 1 ? classes.first! : nil
        var text: [UInt8] = []
        guard targets.minify(into: &text, bytesMax: value.count * 6) else { return nil }
        content = Self.content(ofTargets: text)
    }

    /// - Parameter text: without superfluous white space and escapes, as the encoder writes it.
    static func content(ofTargets text: [UInt8]) -> UInt64 {
        text.withUnsafeBytes { StableHash.hash64($0, seed: 0) }
    }
}
