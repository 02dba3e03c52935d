// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Foundation
import FoundationXML
import Testing

@testable import Demo
@testable import FleetKit

@Suite struct `Demo picture` {
    private func recording(_ frames: [DemoFigures]) throws -> String {
        let encoder = JSONEncoder()
        return try frames.map { String(decoding: try encoder.encode($0), as: UTF8.self) }
            .joined(separator: "\n") + "\n"
    }

    private func run(of seconds: Int) -> [DemoFigures] {
        var frames = (0..<seconds).map { second in
            var figures = DemoFigures.middle
            figures.seconds = second
            figures.events = second * 250
            figures.accepted = second * 1700
            figures.history = (0..<second).map { _ in 1700 }
            figures.messages = (0..<6).map { "\(second):\($0) a & b < c in a line of some length" }
            return figures
        }
        var last = frames[seconds - 1]
        last.phase = .ended
        last.result = "1,234 obligations · 3 kills · 0 lost · 0.4 % duplicates"
        frames.append(last)
        return frames
    }

    @Test func `the demo picture is well-formed, below 60 KB, and ends with the result`() throws {
        let svg = try DemoPicture.svg(recording: try recording(run(of: 400)))
        #expect(svg.utf8.count < 60_000)
        #expect(XMLParser(data: Data(svg.utf8)).parse())
        let last = try #require(svg.range(of: #"<g class="f""#, options: .backwards))
        #expect(svg[last.lowerBound...].contains("1,234 obligations · 3 kills · 0 lost"))
        #expect(svg.matches(of: /<g class="f"/).count == DemoPicture.framesMax)
    }

    @Test func `the demo picture shows the first and the last moment of a run`() {
        let frames = run(of: 400).dropLast()
        let chosen = DemoPicture.choose(Array(frames))
        #expect(chosen.first == frames.first)
        #expect(chosen.last == frames.last)
        #expect(DemoPicture.choose([.middle]) == [.middle])
        #expect(DemoPicture.choose([]).isEmpty)
    }

    @Test func `the demo picture needs a recording that came to its result`() throws {
        #expect(throws: FleetError.self) { try DemoPicture.svg(recording: "") }
        #expect(throws: FleetError.self) { try DemoPicture.svg(recording: "{}\n") }
        let unfinished = try recording(Array(run(of: 5).dropLast()))
        #expect(throws: FleetError.self) { try DemoPicture.svg(recording: unfinished) }
    }
}
