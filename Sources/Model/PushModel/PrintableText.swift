// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

extension String {
    /// This text on one line without control characters, for logs, errors and terminals: control
    /// characters and line ends are written as `\u{1b}`. Text from outside is shown like this.
    package var printable: String {
        guard unicodeScalars.contains(where: Self.isUnprintable) else { return self }
        var text = ""
        for scalar in unicodeScalars {
            if Self.isUnprintable(scalar) {
                text += "\\u{" + String(scalar.value, radix: 16) + "}"
            } else {
                text.unicodeScalars.append(scalar)
            }
        }
        return text
    }

    private static func isUnprintable(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        // C0, DEL and C1; then the line and the paragraph separator.
        case 0..<0x20, 0x7F..<0xA0, 0x2028, 0x2029: true
        default: false
        }
    }
}
