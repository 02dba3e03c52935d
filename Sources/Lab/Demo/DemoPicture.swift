// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FleetKit
internal import Foundation

/// Renders a recorded demo as an SVG that plays its frames in turn; without animation the last one
/// is shown. It has its own dark background, so it is readable on light and dark pages.
package enum DemoPicture {
    /// The most frames, which bounds the size of the file.
    static let framesMax = 14
    private static let secondsEach = 1.6
    private static let columnWidth = 7.83
    private static let rowHeight = 17.0
    private static let margin = 14.0

    /// The SVG of a recording.
    ///
    /// - Parameter recording: the output of `lamplighter-lab demo --record`.
    /// - Throws: `FleetError` if it is not a recording, or has no frame with a result.
    package static func svg(recording: String) throws -> String {
        let decoder = JSONDecoder()
        var frames: [DemoFigures] = []
        for line in recording.split(separator: "\n") {
            guard let figures = try? decoder.decode(DemoFigures.self, from: Data(line.utf8)) else {
                throw FleetError(description: "line \(frames.count + 1) is no frame of a demo")
            }
            frames.append(figures)
        }
        guard let last = frames.last, let result = last.result else {
            throw FleetError(description: "the recording has no result: the demo did not end")
        }
        let chosen = choose(frames.filter { $0.phase == .running }) + [last]
        return document(chosen.map(DemoScreen.rows), title: "lamplighter-lab demo: \(result)")
    }

    /// Evenly spread frames, including the first and the last.
    static func choose(_ frames: [DemoFigures]) -> [DemoFigures] {
        let count = min(framesMax - 1, frames.count)
        guard count > 1 else { return frames }
        return (0..<count).map { frames[$0 * (frames.count - 1) / (count - 1)] }
    }

    // MARK: Text

    private static func document(_ frames: [[[StyledSpan]]], title: String) -> String {
        let width = Int(Double(DemoScreen.columns) * columnWidth + 2 * margin)
        let height = Int(Double(DemoScreen.rows) * rowHeight + 2 * margin)
        let total = Double(frames.count) * secondsEach
        // Three decimals: a coarser number would leave the picture blank for a moment at each
        // change.
        let share = (100_000 / Double(frames.count)).rounded() / 1000
        // Rows that never change are drawn once.
        let standing = Set(
            frames[0].indices.filter { row in
                frames.allSatisfy { row < $0.count && $0[row] == frames[0][row] }
            })
        var lines = [
            #"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \#(width) \#(height)" "#
                + #"role="img" xml:space="preserve">"#,
            "<title>\(escaped(title))</title>",
            "<style>",
            "text{font:13px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;"
                + "fill:#c9d1d9;white-space:pre}",
            ".d{fill:#8b949e}.b{fill:#f0f6fc;font-weight:bold}.g{fill:#3fb950}.w{fill:#d29922}"
                + ".r{fill:#f85149}.l{fill:#ffdf5d;font-weight:bold}",
            ".f{visibility:hidden;animation:f \(text(total))s steps(1) infinite}"
                + ".f:last-child{visibility:visible}",
            "@keyframes f{0%{visibility:visible}\(share)%,100%{visibility:hidden}}",
            "@media(prefers-reduced-motion:reduce){.f{animation:none}}",
            "</style>",
            ##"<rect width="\##(width)" height="\##(height)" rx="8" fill="#0d1117"/>"##,
        ]
        lines += standing.sorted().compactMap { row in element(frames[0][row], row: row) }
        for (index, frame) in frames.enumerated() {
            // The negative delay lets every frame have its turn in the first round.
            let delay = text(Double(index) * secondsEach - total)
            lines.append(#"<g class="f" style="animation-delay:\#(delay)s">"#)
            lines += frame.indices.filter { !standing.contains($0) }.compactMap { row in
                element(frame[row], row: row)
            }
            lines.append("</g>")
        }
        return lines.joined(separator: "\n") + "\n</svg>\n"
    }

    /// A row as a text element. Each span has its own column, so that the widths of a font do not
    /// matter.
    private static func element(_ spans: [StyledSpan], row: Int) -> String? {
        var column = 0
        var parts: [String] = []
        for span in spans {
            let visible = span.text.drop { $0 == " " }
            let start = column + span.text.count - visible.count
            column += span.text.count
            guard let end = visible.lastIndex(where: { $0 != " " }) else { continue }
            let style = name(span.style).map { #" class="\#($0)""# } ?? ""
            let x = text(margin + Double(start) * columnWidth)
            parts.append(#"<tspan x="\#(x)"\#(style)>\#(escaped(String(visible[...end])))</tspan>"#)
        }
        guard !parts.isEmpty else { return nil }
        let y = text(margin + (Double(row) + 0.75) * rowHeight)
        return #"<text y="\#(y)">\#(parts.joined())</text>"#
    }

    private static func name(_ style: StyledSpan.Style) -> String? {
        switch style {
        case .plain: nil
        case .dim: "d"
        case .bold: "b"
        case .good: "g"
        case .warning: "w"
        case .bad: "r"
        case .lit: "l"
        }
    }

    private static func escaped(_ text: String) -> String {
        text.replacing("&", with: "&amp;").replacing("<", with: "&lt;")
    }

    /// A number with at most one decimal, which is enough for coordinates.
    private static func text(_ number: Double) -> String {
        let tenths = Int((number * 10).rounded())
        let sign = tenths < 0 ? "-" : ""
        let (whole, rest) = tenths.magnitude.quotientAndRemainder(dividingBy: 10)
        return rest == 0 ? "\(sign)\(whole)" : "\(sign)\(whole).\(rest)"
    }
}
