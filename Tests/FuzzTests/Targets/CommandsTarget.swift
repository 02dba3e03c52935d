// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

@testable import APNSSimulator

/// The simulator's commands. The input: a script, whose lines are tried as commands too.
enum CommandsTarget {
    /// A word is quoted, and each of its bytes may take six to show.
    private static let errorBytesMax = 6 * CommandLanguage.lineBytesMax + 500

    static func run(_ input: UnsafeRawBufferPointer) throws {
        let text = String(decoding: input, as: UTF8.self)
        let turn = ServingTurn(options: SimulatorOptions())
        for line in text.split(separator: "\n").prefix(64) { try promiseOrder(String(line), turn) }
        let script: SimulatorScript
        do throws(CommandError) {
            script = try SimulatorScript(text)
        } catch { return try promiseLine(error.description, bytesMax: errorBytesMax) }
        try promise(script.entries.count <= SimulatorScript.linesMax, "a script without end")
        for entry in script.entries {
            try promise(entry.after >= .zero, "a time before the start")
            try promise(entry.period.map { $0 >= .milliseconds(10) } ?? true, "a short period")
            do throws(CommandError) { _ = try CommandLanguage.parse(entry.command) } catch {
                throw BrokenPromise(description: "a checked command: \(error)")
            }
        }
    }

    private static func promiseOrder(_ line: String, _ turn: ServingTurn) throws {
        let order: CommandLanguage.Order
        do throws(CommandError) {
            order = try CommandLanguage.parse(line)
        } catch { return try promiseLine(error.description, bytesMax: errorBytesMax) }
        guard case .perform(let command) = order else { return }
        switch command {
        case .delay(let delay):
            turn.delay = delay
            for _ in 0..<4 { try promise(turn.nextDelay() >= 0, "an answer before its time") }
        case .addRule(let rule):
            try promise((0...1).contains(rule.share), "a share of \(rule.share)")
            var script = Script([rule], now: 0)
            let answer = script.next(
                token: Array(rule.tokenPrefix.utf8), on: rule.connections?.lowerBound ?? 1, now: 0)?
                .answer(wallMilliseconds: RecordWorld.now.milliseconds)
            if let answer { try promise((200...599).contains(answer.status), "no HTTP status") }
        case .goAway(let reason?, _): try promiseLine(reason, bytesMax: 64)
        default: break
        }
    }
}
