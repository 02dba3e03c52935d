// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import FlatMemory
internal import LinuxIO
internal import Logging
internal import Pipeline
internal import PushModel

/// The file with the index (docs/snapshots.md). A snapshot that may not be used is thrown away, and one
/// line of the log says why: the next start would find it no better.
struct SnapshotStore: Sendable {
    private let directory: String
    private let path: String
    private let logger: Logger

    /// The name of the file within `index.snapshotDirectory`.
    static let fileName = "lamplighter-index"

    init(directory: String, logger: Logger) {
        self.directory = directory
        path = directory + "/" + Self.fileName
        self.logger = logger
    }

    // MARK: Loading

    /// Reads the index, if there is one that may be used.
    func load(_ plan: WorkerPlan, under conditions: SnapshotConditions) -> LoadedIndex? {
        let begun = ContinuousClock.now
        // One that turns out to be wrong must be thrown away, or each start would find it again.
        if let problem = ReplacedFile.problem(in: directory) {
            notUsed("its folder cannot be written: \(problem)")
            return nil
        }
        do throws(SnapshotFault) {
            guard let file = try open() else {
                logger.notice(
                    "there is no snapshot of the index: everything is read from Kafka",
                    metadata: ["file": "\(path)"])
                return nil
            }
            let reader = try Self.reader(of: file)
            if let doubt = conditions.doubt(of: reader.stamp) {
                notUsed(doubt)
                return nil
            }
            if let refusal = conditions.refusal(of: reader.stamp) { throw SnapshotFault(refusal) }
            let loaded = try LoadedIndex(reader, routing: plan.routing, settings: plan.pipeline)
            logger.notice(
                "the index was loaded; what was written since is read from Kafka",
                metadata: [
                    "file": "\(path)", "bytes": .stringConvertible(file.bytes),
                    "ageSeconds": .stringConvertible(
                        (conditions.now - loaded.stamp.asOf).components.seconds),
                    "seconds": .stringConvertible((ContinuousClock.now - begun).hundredths),
                ])
            return loaded
        } catch {
            discard(error.reason)
            return nil
        }
    }

    /// The stamp of the snapshot that there is; nil if there is none that can be read.
    func stamp() -> SnapshotStamp? {
        do throws(SnapshotFault) {
            guard let file = try open() else { return nil }
            return try Self.reader(of: file).stamp
        } catch {
            return nil
        }
    }

    private func open() throws(SnapshotFault) -> PrivateFile? {
        do throws(PrivateFile.Problem) {
            return try PrivateFile.open(path: path)
        } catch {
            throw SnapshotFault("\(error)")
        }
    }

    private static func reader(of file: PrivateFile) throws(SnapshotFault) -> SnapshotReader {
        try SnapshotReader(bytes: file.bytes) { offset, buffer throws(SnapshotFault) in
            do throws(SystemError) {
                try file.read(at: offset, into: buffer)
            } catch {
                throw SnapshotFault("it cannot be read: \(error)")
            }
        }
    }

    /// - Parameter reason: part of a sentence whose subject is the snapshot, which stays where it is.
    private func notUsed(_ reason: String) {
        logger.warning(
            "the snapshot of the index is not used, and everything is read from Kafka",
            metadata: ["file": "\(path)", "cause": "\(reason)"])
    }

    /// Removes the snapshot.
    ///
    /// - Parameter reason: part of a sentence whose subject is the snapshot.
    func discard(_ reason: String) {
        logger.warning(
            "the snapshot of the index is thrown away, and everything is read from Kafka",
            metadata: ["file": "\(path)", "cause": "\(reason)"])
        do throws(SystemError) {
            try PrivateFile.remove(path: path)
        } catch {
            logger.warning(
                "cannot remove the snapshot of the index",
                metadata: ["file": "\(path)", "cause": "\(error)"])
        }
    }

    // MARK: Writing

    /// How a snapshot is written.
    struct Manner {
        /// Whether the disk is waited for. Without, a crash of the machine may damage the file, which
        /// its checksums tell.
        var isSynchronised = true
        /// When the writer gives up.
        var deadline: ContinuousClock.Instant?
    }

    /// Writes the index. A failure is one line of the log; the snapshot before stays then.
    ///
    /// - Returns: whether it was written.
    @discardableResult
    func write(
        _ pipeline: inout PushPipeline, _ stamp: SnapshotStamp, _ manner: Manner
    ) -> Bool {
        let begun = ContinuousClock.now
        do throws(SnapshotFault) {
            let bytes = try replaceFile(&pipeline, stamp, manner)
            logger.notice(
                "the index was written",
                metadata: [
                    "file": "\(path)", "bytes": .stringConvertible(bytes),
                    "seconds": .stringConvertible((ContinuousClock.now - begun).hundredths),
                ])
            return true
        } catch {
            notWritten(error.reason)
            return false
        }
    }

    /// - Parameter reason: part of a sentence whose subject is the index.
    func notWritten(_ reason: String) {
        logger.warning(
            "the index was not written: the next start may have to read everything from Kafka",
            metadata: ["file": "\(path)", "cause": "\(reason)"])
    }

    /// - Returns: the length of the file.
    private func replaceFile(
        _ pipeline: inout PushPipeline, _ stamp: SnapshotStamp, _ manner: Manner
    ) throws(SnapshotFault) -> Int {
        var bytes = 0
        do {
            let file = try ReplacedFile(path: path)
            try pipeline.writeIndex(stamp) { part throws(SnapshotFault) in
                if let deadline = manner.deadline, deadline < .now {
                    throw SnapshotFault("the time to stop is over")
                }
                bytes += part.count
                do throws(SystemError) {
                    try file.write(part)
                } catch {
                    throw SnapshotFault("\(error)")
                }
            }
            try file.replace(synchronising: manner.isSynchronised)
            return bytes
        } catch let error as SystemError where error.isLockHeld {
            throw SnapshotFault("another process is writing it")
        } catch {
            throw error as? SnapshotFault ?? SnapshotFault("\(error)")
        }
    }
}

extension Duration {
    /// In seconds, to the hundredth.
    fileprivate var hundredths: Double { (self / .milliseconds(10)).rounded() / 100 }
}
