// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// Decides, before its first record is written, whether the complete set of an installation's controls
/// may replace what is stored, and which handlers are removed after it. Each handler is a write of its
/// own, so a refusal that came with the second would leave the set half written.
package struct CompleteSet: Hashable, Sendable {
    /// A handler that the set names.
    package struct Named: Hashable, Sendable {
        package var keyPart: String
        package var partition: Int32
        /// As `RegistrationSummary.content`.
        package var content: UInt64

        package init(keyPart: String, partition: Int32, content: UInt64) {
            self.keyPart = keyPart
            self.partition = partition
            self.content = content
        }
    }

    /// A handler of the installation that is stored, of any class.
    package struct Stored: Hashable, Sendable {
        package var keyPart: String
        package var partition: Int32
        /// nil if its record does not say it.
        package var tokenClass: RegistrationClass?
        package var sequence: Int64?
        /// nil if the replica that has it did not say.
        package var content: UInt64?

        package init(
            keyPart: String, partition: Int32, tokenClass: RegistrationClass?, sequence: Int64?,
            content: UInt64?
        ) {
            self.keyPart = keyPart
            self.partition = partition
            self.tokenClass = tokenClass
            self.sequence = sequence
            self.content = content
        }
    }

    package enum Refusal: Error, Hashable, Sendable {
        case stale(stored: Int64)
        case otherClass(RegistrationClass)
        case tooManyHandlers
    }

    /// What each of its records is written with.
    package let sequence: Int64
    /// The handlers that are removed: all other controls. By parts of their records' keys.
    package let removed: [String]

    /// - Parameters:
    ///   - sequence: nil counts on from what is stored.
    ///   - handlersMax: how many handlers an installation may have in each partition.
    package init(
        _ named: [Named], replacing stored: [Stored], sequence: Int64?,
        handlersMax: Int = RegistrarLimits().handlersMax
    ) throws(Refusal) {
        let names = Dictionary(named.map { ($0.keyPart, $0) }) { first, _ in first }
        for handler in stored {
            guard names[handler.keyPart] != nil, let other = handler.tokenClass,
                other != .controls
            else { continue }
            throw .otherClass(other)
        }
        // A name in the set is compared whatever its class: its record may not say one.
        let replaced = stored.filter { $0.tokenClass == .controls || names[$0.keyPart] != nil }
        let newest = replaced.compactMap(\.sequence).max()
        self.sequence = sequence ?? (newest ?? -1) + 1
        guard self.sequence <= RegistrationArbiter.sequenceMax else {
            throw .stale(stored: newest ?? 0)
        }
        for handler in replaced {
            guard let known = handler.sequence, known >= self.sequence else { continue }
            // A retry has the sequence that is stored, and the same targets.
            let content = names[handler.keyPart]?.content
            let isRetry =
                known == self.sequence && content != nil
                && (handler.content == nil || handler.content == content)
            guard isRetry else { throw .stale(stored: newest ?? known) }
        }
        // As the arbiter counts: what is there already may stay, however much it is.
        let known = Set(stored.map(\.keyPart))
        let new = named.filter { !known.contains($0.keyPart) }.map(\.partition)
        let counts = Dictionary(
            (stored.map(\.partition) + new).map { ($0, 1) }, uniquingKeysWith: +)
        guard new.allSatisfy({ counts[$0, default: 0] <= handlersMax }) else {
            throw .tooManyHandlers
        }
        removed = replaced.map(\.keyPart).filter { names[$0] == nil }
    }
}
