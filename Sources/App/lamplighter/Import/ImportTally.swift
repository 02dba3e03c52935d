// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Importing
import PushModel
import Worker

/// What became of the rows of an import.
struct ImportTally {
    struct Standing {
        var leftOut = 0
        var suppressed = 0
        /// Suppressed before.
        var known = 0
    }

    var rows = 0
    var new = 0
    /// Over what was imported when the installation was last seen earlier.
    var later = 0
    var known = 0
    var registeredThemselves = 0
    var leftOut: [LeftOutRow: Int] = [:]
    var dead = Standing()
    var optedOut = Standing()
    var bad = 0
    /// Imports that ended because the installation has registered itself.
    var ended = 0

    var written: Int { new + later }

    func lines(isDryRun: Bool) -> [String] {
        let verb = isDryRun ? "would write" : "written"
        var lines = [
            "\(rows.counted("row")): \(verb) \(written.counted("registration")), of which \(later) over "
                + "what was imported before"
        ]
        let reasons =
            [
                (registeredThemselves, "of installations that have registered themselves"),
                (known, "imported before"),
            ]
            + LeftOutRow.allCases.map { (leftOut[$0, default: 0], $0.words) }
            + [(optedOut.leftOut, "of who has opted out"), (dead.leftOut, "of dead tokens")]
        let left = reasons.filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }
        if !left.isEmpty { lines.append("left out: " + left.joined(separator: ", ")) }
        let suppressed = dead.suppressed + optedOut.suppressed
        if suppressed + dead.known + optedOut.known > 0 {
            lines.append(
                "\(isDryRun ? "would suppress" : "suppressed"): \(dead.suppressed) dead tokens, "
                    + "\(optedOut.suppressed) of who has opted out; "
                    + "\(dead.known + optedOut.known) were suppressed before")
        }
        if bad > 0 { lines.append("bad: \(bad.counted("row"))") }
        if ended > 0 {
            lines.append(
                "\(isDryRun ? "would end" : "ended"): \(ended.counted("import")) of installations that "
                    + "have registered themselves")
        }
        return lines
    }

    func summary(isDryRun: Bool, seconds: Double) -> ImportSummary {
        ImportSummary(
            rows: rows, written: written, later: later, known: known,
            registeredThemselves: registeredThemselves,
            leftOut: Dictionary(
                uniqueKeysWithValues: leftOut.map { ($0.rawValue, $1) }), dead: dead.leftOut,
            optedOut: optedOut.leftOut, suppressed: dead.suppressed + optedOut.suppressed,
            bad: bad, ended: ended, dryRun: isDryRun, seconds: (seconds * 10).rounded() / 10)
    }
}

/// The summary in JSON.
struct ImportSummary: Encodable {
    let rows, written, later, known, registeredThemselves: Int
    let leftOut: [String: Int]
    let dead, optedOut, suppressed, bad, ended: Int
    let dryRun: Bool
    let seconds: Double
}
