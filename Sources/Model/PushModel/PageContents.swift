// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// The contents with which a page that a program writes begins.
package enum PageContents {
    /// A link to each part of a page, in their order: each line of `body` that is a heading of the second
    /// level, `## `. Code blocks must have no such line.
    package static func list(of body: String) -> String {
        let links = body.split(separator: "\n").filter { $0.hasPrefix("## ") }.map { line in
            let heading = line.dropFirst(3)
            return "[\(heading)](#\(anchor(of: heading)))"
        }
        return "**Contents:** " + links.joined(separator: " ·\n")
    }

    /// As Git servers make it of a heading.
    private static func anchor(of heading: Substring) -> String {
        String(
            heading.lowercased().compactMap { (character: Character) -> Character? in
                if character == " " { return "-" }
                let isKept = character.isLetter || character.isNumber || "-_".contains(character)
                return isKept ? character : nil
            })
    }
}
