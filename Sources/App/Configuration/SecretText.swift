// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FoundationEssentials
internal import PushModel

/// How secrets are read, wherever they come from: files and variables are written by `echo`, by editors,
/// by web forms and by templates, which leave line ends, a byte order mark or quotation marks.
package enum SecretText {
    /// The text without a byte order mark before it and the line ends after it.
    package static func trimmed(_ text: String) -> String {
        var text = Substring(text)
        if text.unicodeScalars.first == "\u{FEFF}" { text.unicodeScalars.removeFirst() }
        while let last = text.unicodeScalars.last, last == "\n" || last == "\r" {
            text.unicodeScalars.removeLast()
        }
        return String(text)
    }

    /// A secret of one line.
    /// - Throws: what is wrong with the text, as the end of a sentence, without quoting it.
    static func line(_ text: String) throws(Complaint) -> String {
        let line = trimmed(text)
        let bytes = Array(line.utf8)
        if let position = bytes.firstIndex(where: { $0 == 0x0A || $0 == 0x0D }) {
            throw Complaint(
                wrong: "has a line break after byte \(position) of \(bytes.count)",
                remedy: "write it in one line")
        }
        return line
    }

    // MARK: Keys

    /// The text of a .p8 file as OpenSSL reads it: also one whose line breaks were written out as `\n`
    /// or lost, that is in quotation marks, or that is base64 as a whole. Any other text as it is.
    package static func key(_ text: String) -> String {
        var text = trimmed(text).trimming { $0.isWhitespace }
        for mark in ["\"", "'"]
        where text.count >= 2 && text.hasPrefix(mark) && text.hasSuffix(mark) {
            text = String(text.dropFirst().dropLast())
        }
        for ending in ["\\r\\n", "\\n", "\\r"] { text = text.replacing(ending, with: "\n") }
        if text.contains("-----BEGIN") { return wrapped(text) }
        let digits = text.filter { !$0.isWhitespace }
        guard let bytes = Data(base64Encoded: digits), !bytes.isEmpty else { return text }
        if let inner = String(validating: bytes, as: UTF8.self), inner.contains("-----BEGIN") {
            return wrapped(trimmed(inner).trimming { $0.isWhitespace })
        }
        // The base64 between the first and the last line begins with a sequence of ASN.1.
        return bytes.first == 0x30
            ? lines("-----BEGIN PRIVATE KEY-----", digits, "-----END PRIVATE KEY-----") : text
    }

    /// PEM with the lines that it must have, whatever separates its parts.
    private static func wrapped(_ text: String) -> String {
        let parts =
            /\s*(-----BEGIN [A-Z0-9 ]+-----)([A-Za-z0-9+\/=\s]+)(-----END [A-Z0-9 ]+-----)\s*/
        guard let match = text.wholeMatch(of: parts) else { return text + "\n" }
        let digits = match.2.filter { !$0.isWhitespace }
        return lines(String(match.1), String(digits), String(match.3))
    }

    private static func lines(_ head: String, _ digits: String, _ tail: String) -> String {
        var lines = [head]
        var rest = Substring(digits)
        while !rest.isEmpty {
            lines.append(String(rest.prefix(64)))
            rest = rest.dropFirst(64)
        }
        return (lines + [tail, ""]).joined(separator: "\n")
    }
}

extension String {
    fileprivate func trimming(_ isOuter: (Character) -> Bool) -> String {
        var text = Substring(self)
        while let first = text.first, isOuter(first) { text.removeFirst() }
        while let last = text.last, isOuter(last) { text.removeLast() }
        return String(text)
    }
}
