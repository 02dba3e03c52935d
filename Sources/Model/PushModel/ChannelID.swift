// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// The ID of a broadcast channel. Apple makes it, gives it in base64, and says nothing of its
/// length.
package struct ChannelID: Sendable, Equatable {
    /// What the base64 encodes: the channel's token in the index and in records.
    package let bytes: [UInt8]

    /// - Parameter text: nil is returned unless encoding its bytes gives this very text again.
    package init?(base64 text: UnsafeRawBufferPointer) {
        guard let bytes = Base64.decode(text), !bytes.isEmpty,
            Base64.encode(bytes).utf8.elementsEqual(text)
        else { return nil }
        self.bytes = bytes
    }

    package init?(base64 text: String) {
        let id = Array(text.utf8).withUnsafeBytes { ChannelID(base64: $0) }
        guard let id else { return nil }
        self = id
    }

    package var base64: String { Base64.encode(bytes) }
}
