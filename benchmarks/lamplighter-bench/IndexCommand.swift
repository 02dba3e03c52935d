// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import ArgumentParser
import Audience
import FlatMemory
import Foundation
import LinuxIO
import PushModel
import RecordFormats

/// The index alone, in the shape that its memory is promised for: per installation one registration
/// of two tokens of 32 bytes, each with two subjects out of 4/5 as many subjects as tokens.
struct IndexCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "index",
        abstract: "Replays registrations into an index: memory, replay rate, look-ups.",
        discussion: "One process measures once: its peak is the kernel's high-water mark.")

    @Option(help: "Subscriptions, in steps of 4.")
    var subscriptions = 10_000_000

    @Option(help: "Bytes of a subject: a random UUID's text (36), or so much of it.")
    var subjectBytes = 20

    @Option(help: "The same seed makes the same registrations.")
    var seed: UInt64 = 1

    @Option(help: "Look-ups that are timed.")
    var lookups = 2_000_000

    @Flag(help: "With the lists of intake.allowKindWide.")
    var kindWide = false

    @Flag(help: "With the lists of intake.allowInstallations.")
    var installations = false

    @Option(help: "Where the index is written to and loaded from; the file is replaced.")
    var snapshot: String?

    func run() throws {
        guard (16...36).contains(subjectBytes) else {
            throw ValidationError("--subject-bytes is from 16 to 36")
        }
        let shape = IndexShape(
            installations: subscriptions / 4, subjectBytes: subjectBytes, seed: seed)
        var furtherLists: FurtherLists = []
        if kindWide { furtherLists.insert(.kindWide) }
        if installations { furtherLists.insert(.installations) }
        var bench = IndexBench(shape, furtherLists)
        let base = try ProcessUsage.statusBytes("VmRSS")
        let replay = try bench.replay()
        let steady = try ProcessUsage.statusBytes("VmRSS") - base
        let peak = try ProcessUsage.statusBytes("VmHWM") - base
        // Those that were asked for, whatever lists there are besides.
        let count = 4 * shape.installations
        let prefetched = bench.lookUp(lookups, together: Audience.prefetchMax)
        let single = bench.lookUp(lookups, together: 1)
        let kept = try snapshot.map { try bench.keep(in: $0) }
        try Report.print(
            Figures(
                subscriptions: bench.statistics.subscriptions, subjects: bench.statistics.subjects,
                steadyBytesPerSubscription: Double(steady) / Double(count),
                peakBytesPerSubscription: Double(peak) / Double(count),
                countedBytesPerSubscription: Double(bench.statistics.totalBytes) / Double(count),
                replayPerSecond: Double(count) / replay.decoding,
                applyPerSecond: Double(count) / replay.applying,
                lookupNanoseconds: prefetched.nanoseconds,
                singleLookupNanoseconds: single.nanoseconds, lookupsFound: prefetched.share,
                snapshotBytes: kept?.bytes, writeSeconds: kept?.writing,
                loadSeconds: kept?.loading))
    }

    private struct Figures: Encodable {
        var subscriptions: Int
        var subjects: Int
        var steadyBytesPerSubscription: Double
        var peakBytesPerSubscription: Double
        /// The bytes per subscription that the index itself counts.
        var countedBytesPerSubscription: Double
        /// From a record's JSON to the index.
        var replayPerSecond: Double
        /// The index's part of it.
        var applyPerSecond: Double
        /// A look-up as the planner makes it, with a few dozen prefetched.
        var lookupNanoseconds: Double
        /// A look-up without prefetch.
        var singleLookupNanoseconds: Double
        /// Some subjects are drawn by nobody.
        var lookupsFound: Double
        var snapshotBytes: Int?
        var writeSeconds: Double?
        /// From the page cache to an index that is checked.
        var loadSeconds: Double?
    }
}

/// Registrations made from numbers, so that nothing of them is kept.
struct IndexShape {
    let installations: Int
    let subjectBytes: Int
    let seed: UInt64

    /// 4 M for 5 M tokens.
    var subjects: Int { installations * 8 / 5 }

    func registration(_ number: Int) -> RegistrationDraft {
        var random = SplitMix64(seed: seed &+ UInt64(number) &* 0x9E37_79B9)
        var draft = RegistrationDraft(
            environment: .production, app: Town.app, installation: Self.uuid(random.next()),
            handler: "h")
        draft.targets = (0..<2).map { _ in
            let token = (0..<4).flatMap { _ in withUnsafeBytes(of: random.next()) { Array($0) } }
            let shown = (0..<2).map { _ in subject(Int(random.next(below: UInt64(subjects)))) }
            return RegistrationDraft.Target(
                tokenClass: .control, token: token,
                shows: [RegistrationDraft.Show(kind: "k", subjects: shown)])
        }
        return draft
    }

    func subject(_ number: Int) -> String {
        String(Self.uuid(seed &+ UInt64(number) | 1 << 63).prefix(subjectBytes))
    }

    /// A UUID that looks random (version 4) but follows from the seed.
    private static func uuid(_ seed: UInt64) -> String {
        var random = SplitMix64(seed: seed)
        let (high, low) = (random.next(), random.next())
        let bytes = withUnsafeBytes(of: high) { Array($0) } + withUnsafeBytes(of: low) { Array($0) }
        var id = uuid_t(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
        withUnsafeMutableBytes(of: &id) { $0.copyBytes(from: bytes) }
        id.6 = id.6 & 0x0F | 0x40
        id.8 = id.8 & 0x3F | 0x80
        return UUID(uuid: id).uuidString.lowercased()
    }
}

struct IndexBench: ~Copyable {
    private let shape: IndexShape
    private let furtherLists: FurtherLists
    private var audience: Audience
    private var changes = AudienceChanges()
    private var decoder: RegistrationDecoder
    private var registration = Registration()
    /// The keys to look up, made before the first measurement, so that none includes their memory.
    private var keys: [UInt8]
    private let drawn: [Int]

    private static let chunk = 5000
    /// The number of different subjects looked up. Their keys are read in order; the index is not.
    private static let keysMax = 500_000

    init(_ shape: IndexShape, _ furtherLists: FurtherLists) {
        self.shape = shape
        self.furtherLists = furtherLists
        let routing = Town.routing()
        audience = Audience(routing: routing, hashSeed: 7, furtherLists: furtherLists)
        decoder = RegistrationDecoder(routing: routing)
        var random = SplitMix64(seed: shape.seed &+ 1)
        let subjects = shape.subjects
        drawn = (0..<min(Self.keysMax, subjects)).map { _ in
            Int(random.next(below: UInt64(subjects)))
        }
        keys = []
        keys.reserveCapacity(drawn.count * shape.subjectBytes)
        for number in drawn { keys.append(contentsOf: shape.subject(number).utf8) }
    }

    var statistics: AudienceStatistics { audience.statistics }

    struct Replay {
        /// Seconds for everything, and for the index alone.
        var decoding = 0.0
        var applying = 0.0
    }

    mutating func replay() throws -> Replay {
        var replay = Replay()
        var records: [(key: [UInt8], value: [UInt8])] = []
        records.reserveCapacity(Self.chunk)
        var next = 0
        while next < shape.installations {
            records.removeAll(keepingCapacity: true)
            for number in next..<min(next + Self.chunk, shape.installations) {
                let draft = shape.registration(number)
                records.append((RegistrationEncoder.key(draft), RegistrationEncoder.value(draft)))
            }
            next += records.count
            // The same records are decoded twice: once alone, to know the index's own share.
            let decoding = try time { bench throws in
                for record in records { try bench.decode(record) }
            }
            let all = try time { bench throws in
                for record in records {
                    try bench.decode(record)
                    bench.apply()
                }
            }
            replay.decoding += all
            replay.applying += max(0, all - decoding)
        }
        return replay
    }

    private mutating func time(_ body: (inout IndexBench) throws -> Void) rethrows -> Double {
        let start = ContinuousClock.now
        try body(&self)
        return (.now - start) / .seconds(1)
    }

    /// Writes the index to a file and loads it from there.
    func keep(in path: String) throws -> (bytes: Int, writing: Double, loading: Double) {
        let routing = Town.routing()
        let stamp = SnapshotStamp(
            cluster: "bench", tables: [], asOf: WallTime(milliseconds: 1_795_000_000_000),
            routing: SnapshotStamp.fingerprint(of: routing, furtherLists: furtherLists),
            tombstonesLast: nil)
        let begun = ContinuousClock.now
        let written = try ReplacedFile(path: path)
        try audience.write(stamp, notes: []) { part throws(SnapshotFault) in
            do { try written.write(part) } catch { throw SnapshotFault("\(error)") }
        }
        try written.replace(synchronising: false)
        let middle = ContinuousClock.now
        guard let file = try PrivateFile.open(path: path) else {
            throw BenchError("\(path) is not there")
        }
        let reader = try SnapshotReader(bytes: file.bytes) {
            offset, buffer throws(SnapshotFault) in
            do { try file.read(at: offset, into: buffer) } catch { throw SnapshotFault("\(error)") }
        }
        let loaded = try reader.audience(routing: routing, furtherLists: furtherLists)
        let ended = ContinuousClock.now
        guard loaded.statistics.subscriptions == statistics.subscriptions else {
            throw BenchError("the index that was loaded is another one")
        }
        return (file.bytes, (middle - begun) / .seconds(1), (ended - middle) / .seconds(1))
    }

    private mutating func decode(_ record: (key: [UInt8], value: [UInt8])) throws {
        _ = try record.key.withUnsafeBytes { key in
            try record.value.withUnsafeBytes { value in
                try decoder.decode(
                    key: key, value: value, timestamp: WallTime(milliseconds: 1_795_000_000_000),
                    into: &registration)
            }
        }
    }

    private mutating func apply() {
        _ = audience.apply(registration, changes: &changes)
    }

    /// Looks subjects up in a random order, `together` of them prefetched at once; 1 means no
    /// prefetch.
    func lookUp(_ count: Int, together: Int) -> (nanoseconds: Double, share: Double) {
        let app = AppID(rawValue: 0)
        var found = 0
        var hashes: [UInt64] = []
        let start = ContinuousClock.now
        keys.withUnsafeBytes { keys in
            for first in stride(from: 0, to: count, by: together) {
                let numbers = first..<min(first + together, count)
                if together > 1 {
                    hashes.removeAll(keepingCapacity: true)
                    for number in numbers {
                        hashes.append(audience.hash(app, key(number, of: keys), .subject))
                    }
                    audience.prefetch(subjects: hashes)
                }
                for number in numbers where audience.subject(app, key(number, of: keys)) != nil {
                    found += 1
                }
            }
        }
        let nanoseconds = (ContinuousClock.now - start) / .nanoseconds(1)
        return (nanoseconds / Double(count), Double(found) / Double(count))
    }

    private func key(_ number: Int, of keys: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        let first = number % drawn.count * shape.subjectBytes
        return UnsafeRawBufferPointer(rebasing: keys[first..<first + shape.subjectBytes])
    }
}
