// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// A piece of text in one style.
struct StyledSpan: Equatable, Sendable {
    enum Style: String, Sendable {
        case plain, dim, bold, good, warning, bad, lit
    }

    var text: String
    var style: Style

    init(_ text: String, _ style: Style = .plain) {
        self.text = text
        self.style = style
    }
}

/// Formats rows for a terminal.
enum TerminalText {
    /// The text that redraws the whole screen from the top and clears each row to its end.
    static func screen(_ rows: [[StyledSpan]], isColoured: Bool) -> String {
        let lines = rows.map { row in
            row.map { text($0, isColoured: isColoured) }.joined() + "\u{1B}[K"
        }
        return "\u{1B}[H" + lines.joined(separator: "\n") + "\u{1B}[J"
    }

    static func text(_ span: StyledSpan, isColoured: Bool) -> String {
        guard isColoured, let code = code(span.style), !span.text.isEmpty else { return span.text }
        return "\u{1B}[\(code)m\(span.text)\u{1B}[0m"
    }

    private static func code(_ style: StyledSpan.Style) -> String? {
        switch style {
        case .plain: nil
        case .dim: "2"
        case .bold: "1"
        case .good: "32"
        case .warning: "33"
        case .bad: "31"
        case .lit: "1;93"
        }
    }
}
