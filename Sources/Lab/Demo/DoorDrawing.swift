// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// Draws the first installation's control for its garage door.
enum DoorDrawing {
    static func rows(_ door: DemoFigures.Door) -> [[StyledSpan]] {
        let leaf = door.isOpen ? "          " : "▒▒▒▒▒▒▒▒▒▒"
        let floor = door.isOpen ? "   ▟██▙   " : "▒▒▒▒▒▒▒▒▒▒"
        let style: StyledSpan.Style = door.isLit ? .lit : .plain
        let state = door.isOpen ? "open" : "closed"
        let after = door.milliseconds.map { "after \(DurationText.milliseconds($0))" } ?? ""
        func framed(_ text: String, _ style: StyledSpan.Style = .plain) -> [StyledSpan] {
            let free = max(0, 20 - text.count)
            let before = String(repeating: " ", count: free / 2)
            let after = String(repeating: " ", count: free - free / 2)
            return [
                StyledSpan("│", .dim), StyledSpan(before),
                StyledSpan(String(text.prefix(20)), style), StyledSpan(after),
                StyledSpan("│", .dim),
            ]
        }
        return [
            [StyledSpan("╭────────────────────╮", .dim)],
            framed("Garage door", .bold),
            framed(""),
            framed("▟██████████▙", style),
            framed("█\(leaf)█", style),
            framed("█\(leaf)█", style),
            framed("█\(floor)█", style),
            framed(""),
            framed(state, style),
            framed(after, .good),
            framed(""),
            [StyledSpan("╰────────────────────╯", .dim)],
        ]
    }
}
