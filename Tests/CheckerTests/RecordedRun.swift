// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Checker
import Foundation
import Testing

/// The logs of a small successful run, which a test changes and then checks.
///
/// Two controls registered for `door-1` an hour before. A hundred events about it are ten
/// milliseconds apart, and each leads to an accepted push per control five milliseconds later.
struct RecordedRun {
    static let app = "com.example.Home"
    static let controls = app + ".push-type.controls"
    static let tokens = [
        String(repeating: "a1", count: 32), String(repeating: "b2", count: 32),
    ]
    /// When the first event was produced, in milliseconds since 1970.
    static let start: Int64 = 1_795_000_000_000
    /// The first event about `door-2`, in another partition. It has no push unless a test adds one.
    static let other = Self.event(0, "door-2", partition: 1, offset: 0)

    var events = (0..<100).map { event(Int64($0) * 10, offset: Int64($0)) }
    var registrations = [registration(at: -3_600_000)]
    var answers = (0..<100).flatMap { number in
        tokens.indices.map { answer(Int64(number) * 10 + 5, $0, id: number * 2 + $0) }
    }
    var deadLetters: [String] = []
    var suppressions: [String]?
    var lowWatermarks: [String] = []
    var change: (inout CheckSettings) -> Void = { _ in }

    func judged() throws -> CheckReport {
        try inDirectory { directory in
            var settings = CheckSettings(
                events: try write(events, "events", directory),
                answers: try write(answers, "answers", directory),
                registrations: .file(try write(registrations, "registrations", directory)))
            settings.deadLetters = .file(try write(deadLetters, "letters", directory))
            if let suppressions {
                settings.suppressions = .file(try write(suppressions, "suppressions", directory))
            }
            settings.lowWatermarks = try write(lowWatermarks, "lows", directory)
            change(&settings)
            var check = DeliveryCheck(settings)
            return try check.run()
        }
    }

    /// When the last event was produced, in milliseconds since the first; its offset is 99.
    static let lastEvent: Int64 = 990

    /// Checks the run without its last push, the one to token 1 for the last event, and with
    /// further changes.
    static func cutShort(_ change: (inout RecordedRun) -> Void) throws -> CheckReport {
        var run = RecordedRun()
        run.answers.removeLast()
        change(&run)
        let report = try run.judged()
        let ends =
            report.accepted + report.coalesced + report.expired + report.suppressed
            + report.deadLettered + report.withdrawn + report.truncated + report.lost
        #expect(report.obligations == ends)
        return report
    }

    func inDirectory<Result>(_ body: (URL) throws -> Result) throws -> Result {
        let directory = FileManager.default.temporaryDirectory
            .appending(path: "lamplighter-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        return try body(directory)
    }

    func write(_ lines: [String], _ name: String, _ directory: URL) throws -> String {
        let file = directory.appending(path: name)
        try Data(lines.map { $0 + "\n" }.joined().utf8).write(to: file)
        return file.path
    }

    // MARK: Lines; all times are in milliseconds since the first event

    static func event(
        _ time: Int64, _ subject: String = "door-1", partition: Int = 0, offset: Int64,
        more: String = ""
    ) -> String {
        #"{"t":\#((start + time) * 1_000_000),"topic":"events","partition":\#(partition),"#
            + #""offset":\#(offset),"app":"\#(app)","subject":"\#(subject)"\#(more)}"#
    }

    static func answer(
        _ time: Int64, _ token: Int, id: Int, status: Int = 200, reason: String = "",
        topic: String = controls, environment: String = "production"
    ) -> String {
        #"{"t":\#((start + time) * 1_000_000),"conn":1,"env":"\#(environment)","#
            + #""topic":"\#(topic)","token":"\#(tokens[token])","#
            + #""apnsID":"00000000-0000-8000-8000-\#(String(format: "%012d", id))","#
            + #""status":\#(status),"reason":"\#(reason)"}"#
    }

    /// A registration of these tokens, by number; nil for a tombstone.
    static func registration(
        at time: Int64, showing tokens: [Int]? = [0, 1], subject: String = "door-1",
        handler: String = "Doors"
    ) -> String {
        let targets = (tokens ?? []).map {
            #"{"class":"control","token":"\#(Self.tokens[$0])","shows":[{"kind":"door","#
                + #""subjects":["\#(subject)"]}]}"#
        }
        let value =
            tokens == nil
            ? "null" : quoted(#"{"v":1,"targets":[\#(targets.joined(separator: ","))]}"#)
        return #"{"t":\#(start + time),"key":"production/\#(app)/6F1C/\#(handler)","#
            + #""value":\#(value)}"#
    }

    static func deadLetter(
        offset: Int64, tokens: [Int], at time: Int64 = 5000, attempts: Int = 1,
        status: Int? = 400, reason: String = "PayloadEmpty"
    ) -> String {
        let targets = tokens.map {
            #"{"token":"\#(Self.tokens[$0])","environment":"production","#
                + #""apnsTopic":"\#(controls)"}"#
        }
        let letter =
            #"{"v":1,"reason":"\#(reason)",\#(status.map { #""status":\#($0),"# } ?? "")"#
            + #""attempts":\#(attempts),"source":{"topic":"events","partition":0,"#
            + #""offset":\#(offset)},"firstAt":"\#(instant(0))","lastAt":"\#(instant(time))","#
            + #""tokens":[\#(targets.joined(separator: ","))]}"#
        return #"{"t":\#(start + time),"key":"door-1","value":\#(quoted(letter))}"#
    }

    /// A suppression; with a status of nil the tombstone that revokes it.
    static func suppression(
        at time: Int64, registeredAt: Int64 = -3_600_000, token: Int, status: Int? = 410
    ) -> String {
        let value = status.map {
            #"{"v":1,"status":\#($0),"reason":"Unregistered","#
                + #""registeredAt":"\#(instant(registeredAt))"}"#
        }
        return #"{"t":\#(start + time),"key":"production/\#(controls)/\#(tokens[token])","#
            + #""value":\#(value.map(quoted) ?? "null")}"#
    }

    static func quoted(_ text: String) -> String {
        "\"" + text.replacing("\"", with: "\\\"") + "\""
    }

    private static func instant(_ time: Int64) -> String {
        Date(timeIntervalSince1970: Double(start + time) / 1000).formatted(
            Date.ISO8601FormatStyle(includingFractionalSeconds: true))
    }
}
