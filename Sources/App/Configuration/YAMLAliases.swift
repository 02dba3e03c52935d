// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// Detects files whose aliases would make the YAML parser run for days.
///
/// The parser compares the keys of each map as it reads, with the aliases in a key expanded: a file
/// of a few hundred bytes would keep it busy for days, before the values can be counted. The keys
/// of a configuration are words, so such a file is refused before it is parsed.
enum YAMLAliases {
    /// The most aliases in a file that may have them in keys. In the worst arrangement 16 aliases
    /// expand to 4⁴ times what they name.
    private static let inKeysMax = 16

    /// Whether a key may contain aliases and there are many of them. Quoted text and comments count
    /// as well, so the number is what spares ordinary files.
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

    /// Whether the byte can be part of an alias's name. YAML allows other characters too, but
    /// taking a name as shorter can only make a file suspect, never hide an alias.
    private static func isNamePart(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "-"):
            true
        default: false
        }
    }

    /// Whether a colon follows at `end`, so that what ends there is a key. White space, line ends
    /// included, may precede the colon.
    private static func isKey(_ bytes: [UInt8], endingAt end: Int) -> Bool {
        bytes[end...].first { ![0x20, 0x09, 0x0A, 0x0D].contains($0) } == UInt8(ascii: ":")
    }
}
