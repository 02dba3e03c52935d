// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// Looks at the text of a file for what the parser must not be given.
///
/// The parser compares the keys of each map while it reads, and an alias within a key is compared
/// as what it unfolds to: a file of a few hundred bytes would keep it busy for days, before
/// anything can be counted. Keys of ours are words, so such a file is refused unread.
enum YAMLAliases {
    /// 16 aliases, shared out for the worst, unfold to 4 to the power of 4 times what they name.
    private static let inKeysMax = 16

    /// Whether a key may hold aliases, and there are many. Quotation marks and comments are not
    /// told apart, so the many are what keeps other files from suspicion.
    static func mayUnfoldInKeys(_ text: String) -> Bool {
        let bytes = Array(text.utf8)
        var aliases = 0
        var hasKeyOfParts = false
        for (index, byte) in bytes.enumerated() {
            switch byte {
            case UInt8(ascii: "*") where startsWord(bytes, index):
                aliases += 1
                let end = bytes[(index + 1)...].firstIndex { !isNamePart($0) } ?? bytes.count
                hasKeyOfParts = hasKeyOfParts || isKey(bytes, endingAt: end)
            case UInt8(ascii: "?") where startsWord(bytes, index): hasKeyOfParts = true
            case UInt8(ascii: "]"), UInt8(ascii: "}"):
                hasKeyOfParts = hasKeyOfParts || isKey(bytes, endingAt: index + 1)
            default: break
            }
        }
        return hasKeyOfParts && aliases > inKeysMax
    }

    private static func startsWord(_ bytes: [UInt8], _ index: Int) -> Bool {
        index == 0 || !isNamePart(bytes[index - 1])
    }

    /// YAML allows other characters too; a name that ends too soon only makes a file more suspect.
    private static func isNamePart(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "-"):
            true
        default: false
        }
    }

    /// White space, line ends included, may stand before the colon in a map of one line.
    private static func isKey(_ bytes: [UInt8], endingAt end: Int) -> Bool {
        bytes[end...].first { ![0x20, 0x09, 0x0A, 0x0D].contains($0) } == UInt8(ascii: ":")
    }
}
