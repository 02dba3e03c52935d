// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Foundation
internal import Testing

/// A test that gives up, or fails, when a busy machine takes longer says nothing of the program.
@Suite struct `Patient tests` {
    private static let impatient: [(pattern: String, instead: String)] = [
        (#"\.timeLimit\("#, "scripts/test.py ends what hangs"),
        (#"(ContinuousClock(\(\))?|clock)\.now \+ "#, "FleetKit has a Patience"),
        (#"Date\(timeIntervalSinceNow: [a-z0-9]|onotonicNanoseconds\(\) \+ "#, "the same"),
        (#"asyncAfter"#, "the same"),
        (
            #"#(expect|require)\(.*(ContinuousClock\.now - \w+|to: \.now)\)? <"#,
            "FleetKit has a Stopwatch"
        ),
    ]

    private static func found(in text: String) throws -> [String] {
        try impatient.flatMap { pattern, instead in
            text.matches(of: try Regex(pattern)).map { "\(text[$0.range]): \(instead)" }
        }
    }

    @Test func `patient tests do not give up, and do not fail, by the clock alone`() throws {
        let files = Repository.files(in: ["Tests"]) {
            $0.hasSuffix(".swift") && !$0.hasSuffix("/PatientTestsTests.swift")
        }
        #expect(files.count > 300)
        for file in files {
            let found = try Self.found(in: try Repository.text(file))
            #expect(found.isEmpty, "\(file)")
        }
    }

    @Test(arguments: [
        "@Suite(.serialized, .timeLimit(.minutes(3)))",
        "let deadline = ContinuousClock.now + .seconds(5)",
        "let deadline = Date(timeIntervalSinceNow: 5)",
        "#expect(ContinuousClock.now - start < .seconds(5))",
        "#expect(start.duration(to: .now) < .seconds(5))",
    ])
    func `patient tests are told from others`(line: String) throws {
        #expect(try Self.found(in: line).count == 1)
    }
}
