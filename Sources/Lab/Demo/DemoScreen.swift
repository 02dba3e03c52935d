// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// Lays out figures as at most 24 rows of at most 80 columns; every character takes one column.
enum DemoScreen {
    static let columns = 80
    static let rows = 24
    private static let leftColumns = 54

    static func rows(_ figures: DemoFigures) -> [[StyledSpan]] {
        var left = counts(figures)
        let right = DoorDrawing.rows(figures.door)
        while left.count < right.count { left.append([]) }
        var screen = [title(figures), []]
        for (index, row) in left.enumerated() {
            let row = fitted(row, to: leftColumns)
            screen.append(row + (index < right.count ? right[index] : []))
        }
        screen.append([])
        screen += happenings(figures)
        while screen.count < rows - 1 { screen.append([]) }
        screen.append(footer(figures))
        return screen.prefix(rows).map { cut($0, to: columns) }
    }

    // MARK: Parts

    private static func title(_ figures: DemoFigures) -> [StyledSpan] {
        let phase =
            switch figures.phase {
            case .starting: "starting"
            case .running:
                DurationText.clock(figures.seconds) + " of "
                    + DurationText.clock(figures.duration)
            case .draining: "no more events; waiting for what is owed"
            case .judging: "the checker reads the logs"
            case .ended: "ended"
            }
        // The texts of the other phases leave no room for it.
        let page = [.starting, .running].contains(figures.phase) ? figures.page : nil
        return [
            StyledSpan(" Lamplighter ", .bold),
            StyledSpan(" \(figures.installations.grouped) installations · "),
            StyledSpan(phase, figures.phase == .running ? .plain : .warning),
            StyledSpan(page.map { " · \($0)" } ?? "", .dim),
        ]
    }

    private static func counts(_ figures: DemoFigures) -> [[StyledSpan]] {
        var rows = [
            row("events in", figures.events, rate: figures.eventsPerSecond),
            row("pushes accepted", figures.accepted, rate: figures.acceptedPerSecond, .good),
        ]
        // Refusals always take three lines, so that the layout does not move.
        for index in 0..<3 {
            guard index < figures.refusals.count else {
                rows.append([])
                continue
            }
            let outcome = figures.refusals[index]
            rows.append(row(outcome.name, outcome.count, .warning))
        }
        rows.append([])
        rows.append(row("in flight", figures.inFlight))
        rows.append(row("waiting for a push", figures.waiting))
        rows.append(row("lag (events)", figures.lag))
        rows.append([
            StyledSpan(" event → accepted ", .dim), StyledSpan("    p50 ", .dim),
            StyledSpan(DurationText.milliseconds(figures.p50ms), .bold),
            StyledSpan("   p99 ", .dim),
            StyledSpan(DurationText.milliseconds(figures.p99ms), .bold),
        ])
        rows.append([StyledSpan(" \(bars(figures.history))", .good)])
        rows.append(workers(figures))
        return rows
    }

    private static func row(
        _ name: String, _ count: Int?, rate: Int? = nil, _ style: StyledSpan.Style = .bold
    ) -> [StyledSpan] {
        let number = count?.grouped ?? "–"
        var spans = [
            StyledSpan(" " + padded(String(name.prefix(26)), to: 27), .dim),
            StyledSpan(leading(number, to: 11), count == nil ? .dim : style),
        ]
        if let rate { spans.append(StyledSpan(leading("\(rate.grouped)/s", to: 10), .dim)) }
        return spans
    }

    private static func workers(_ figures: DemoFigures) -> [StyledSpan] {
        var spans: [StyledSpan] = []
        for (index, worker) in figures.workers.enumerated() {
            let isNew = worker.seconds < 3 && figures.kills > 0
            spans.append(StyledSpan(" worker \(index + 1) ", .dim))
            spans.append(
                StyledSpan(DurationText.clock(worker.seconds), isNew ? .warning : .plain))
        }
        spans.append(
            StyledSpan("   \(figures.kills) \(figures.kills == 1 ? "kill" : "kills")", .bad))
        return spans
    }

    private static func bars(_ history: [Int]) -> String {
        let blocks = Array("▁▂▃▄▅▆▇█")
        let recent = history.suffix(leftColumns - 3)
        let most = max(1, recent.max() ?? 1)
        return String(recent.map { $0 == 0 ? " " : blocks[($0 * 8 - 1) / most] })
    }

    private static func happenings(_ figures: DemoFigures) -> [[StyledSpan]] {
        var rows = figures.messages.suffix(6).map { [StyledSpan(" \($0)", .dim)] }
        if let result = figures.result {
            rows = Array(rows.suffix(5)) + [[StyledSpan(" \(result)", .bold)]]
        }
        return rows
    }

    private static func footer(_ figures: DemoFigures) -> [StyledSpan] {
        let spans = keys(in: figures.phase).flatMap { key, what in
            [StyledSpan(" \(key) ", .bold), StyledSpan("\(what) ", .dim)]
        }
        let isAlone = figures.phase == .running && figures.isScripted
        return spans + [StyledSpan(isAlone ? "  (by itself)" : "", .dim)]
    }

    /// The keys that have an effect in this phase.
    private static func keys(in phase: DemoFigures.Phase) -> [(key: String, what: String)] {
        switch phase {
        case .starting: [("q", "end")]
        case .running:
            [
                ("d", "flip a door"), ("k", "kill a worker"), ("r", "the registrar"),
                ("g", "GOAWAY"),
                ("s", "stall"), ("5", "503"), ("q", "end"),
            ]
        case .draining: [("q", "end now, without a result")]
        case .judging, .ended: []
        }
    }

    // MARK: Columns

    private static func padded(_ text: String, to width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - text.count))
    }

    private static func leading(_ text: String, to width: Int) -> String {
        String(repeating: " ", count: max(0, width - text.count)) + text
    }

    private static func fitted(_ row: [StyledSpan], to width: Int) -> [StyledSpan] {
        let row = cut(row, to: width)
        let used = row.reduce(0) { $0 + $1.text.count }
        return row + [StyledSpan(String(repeating: " ", count: width - used))]
    }

    private static func cut(_ row: [StyledSpan], to width: Int) -> [StyledSpan] {
        var room = width
        return row.map { span in
            let text = String(span.text.prefix(room))
            room -= text.count
            return StyledSpan(text, span.style)
        }
    }
}
