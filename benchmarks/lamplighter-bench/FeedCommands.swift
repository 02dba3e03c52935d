// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import ArgumentParser
import FleetKit
import Foundation
import PushModel
import RecordFormats

/// Registers a town's tokens.
struct RegisterCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "register",
        abstract: "Writes a registration for each token, and sees that Kafka has kept them all.")

    @Option(help: "host:port, several joined by commas.")
    var bootstrap: String

    @Option(help: "The Kafka topic of the registrations.")
    var topic = "lamplighter.registrations"

    @Option(help: "Tokens, one registration each.")
    var tokens: Int

    @Option(
        name: .customLong("fan-out"),
        help: "Tokens that show a subject: 1, 10 or 1000; may be repeated.")
    var fanOuts = Town.fanOuts

    @Option(help: "How many of the last tokens show the subject everyone too.")
    var everyone = 0

    @Option(help: "Phones, each woken by changes of a subject of its own.")
    var phones = 0

    @Option(help: "Controls of another app, each with a subject of its own.")
    var lamps = 0

    func run() throws {
        // Tokens are random and written in hexadecimal: zstd halves that, lz4 does not. The embedded Kafka
        // finds a batch by passing all that are before it: they are as large as can be.
        var feed = try KafkaFeed(
            bootstrap: bootstrap, topic: topic,
            properties: [
                "compression.codec": "zstd", "linger.ms": "2000", "batch.size": "1000000",
                "queue.buffering.max.messages": "2000000",
                "queue.buffering.max.kbytes": "1000000",
            ])
        func write(_ registration: RegistrationDraft) throws {
            try feed.write(
                key: RegistrationEncoder.key(registration),
                value: RegistrationEncoder.value(registration))
        }
        for number in 0..<tokens {
            try write(
                Town.registration(
                    number, fanOuts: fanOuts, showsEveryone: number >= tokens - everyone))
        }
        for number in 0..<phones { try write(Town.phone(number)) }
        for number in 0..<lamps { try write(Town.lamp(number)) }
        try feed.flush()
        guard try feed.dropped() == 0 else {
            throw BenchError("Kafka has dropped registrations: it needs more partitions")
        }
        try Report.print(["registrations": feed.acknowledged])
    }
}

/// The topic of the events, and the group that reads it.
struct EventDestination: ParsableArguments {
    @Option(help: "host:port, several joined by commas.")
    var bootstrap: String

    @Option(help: "The Kafka topic of the events.")
    var topic = "lamplighter.events"

    @Option(help: "The worker's consumer group.")
    var group = "lamplighter"
}

/// Emits events as fast as the worker takes them, and waits for the last stored offset.
struct EmitCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "emit",
        abstract: "Writes events in laps, each when the group has committed the one before it.",
        discussion: """
            A lap has no subject twice, so no push is coalesced, and fits into the embedded Kafka, \
            which drops what is beyond 5 MiB of a partition.
            """)

    @OptionGroup var destination: EventDestination

    @Option(help: "Tokens that are registered.")
    var tokens: Int

    @Option(help: "Tokens that show the subject of an event: 1, 10 or 1000.")
    var fanOut = 1

    @Option(help: "Events.")
    var events: Int

    @Option(help: "How many events of this fan-out went before: the subjects go on from there.")
    var after = 0

    @Flag(help: "JSON events of about 120 bytes instead of a key alone.")
    var json = false

    @Option(help: "Events of a lap, at most.")
    var lap = 500_000

    func run() throws {
        var feed = try KafkaFeed(
            bootstrap: destination.bootstrap, topic: destination.topic, group: destination.group,
            properties: ["compression.codec": "lz4", "linger.ms": "20"])
        let order = Town.shuffled(Town(tokens: tokens).subjects(fanOut: fanOut))
        let before = try feed.written()
        let lap = min(lap, order.count)
        let start = ContinuousClock.now
        for number in 0..<events {
            if number > 0, number % lap == 0 {
                try feed.flush()
                try feed.wait(forCommitted: before + number)
            }
            let position = Int(order[(after + number) % order.count])
            let subject = Town.subject(position, fanOut: fanOut)
            try feed.write(
                key: Array(subject.utf8), value: json ? value(subject, number) : nil)
        }
        try feed.flush()
        try feed.wait(forCommitted: before + events)
        try Report.print(Figures(events: events, seconds: (.now - start) / .seconds(1)))
    }

    private struct Figures: Encodable {
        var events: Int
        var seconds: Double
    }

    /// `{"v":1,"id":…,"subject":…,"time":…,"app":…}`.
    private func value(_ subject: String, _ number: Int) -> [UInt8] {
        var event = EventDraft()
        event.id = String(UInt64(number) | 1 << 63, radix: 16)
        event.subject = subject
        event.time = Now.current.wall
        event.app = Town.app
        return EventEncoder.value(event)
    }
}
