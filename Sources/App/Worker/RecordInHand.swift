// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import LinuxIO
internal import Logging

/// Says which event record is being read, in a file that outlives a crash (`intake.lastRecordFile`).
/// A record that the worker cannot get past would otherwise have no name: each restart dies of it.
///
/// A few stores into mapped memory a record; no system call.
package final class RecordInHand: Sendable {
    private let words: SharedWords

    /// The record that the process before this one was reading when it ended.
    package let left: Configuration.Kafka.RecordCoordinates?

    // Words of the file. The topic's is written last and cleared first.
    private static let topic = 0
    private static let partition = 1
    private static let offset = 2

    /// - Parameter topics: as the worker numbers them; their names go into the file, since the next
    ///   process may number them otherwise.
    package init(file: String, topics: [String]) throws(SystemError) {
        words = try SharedWords(path: file)
        left = Self.coordinates(in: words)
        words[Self.topic] = 0
        words.rewrite(text: topics.joined(separator: "\n"))
    }

    /// Reading begins.
    func take(topic: Int, partition: Int32, offset: Int64) {
        words[Self.partition] = UInt64(UInt32(bitPattern: partition))
        words[Self.offset] = UInt64(bitPattern: offset)
        words[Self.topic] = UInt64(topic) + 1
    }

    /// It has been read, or passed over.
    func putDown() { words[Self.topic] = 0 }

    /// Nil also for a file that is not ours.
    private static func coordinates(
        in words: SharedWords
    ) -> Configuration.Kafka.RecordCoordinates? {
        let names = words.text.split(separator: "\n")
        let topic = words[Self.topic]
        guard topic > 0, topic <= UInt64(names.count),
            let partition = Int32(exactly: words[Self.partition]),
            let offset = Int64(exactly: words[Self.offset])
        else { return nil }
        return Configuration.Kafka.RecordCoordinates(
            topic: String(names[Int(topic) - 1]), partition: partition, offset: offset)
    }
}

extension Configuration {
    /// Says what the file has to say, and makes it ready. A file that cannot be had is no reason not to
    /// send pushes.
    func recordInHand(topics: [String], logger: Logger) -> RecordInHand? {
        guard let file = intake.lastRecordFile else { return nil }
        do throws(SystemError) {
            let record = try RecordInHand(file: file, topics: topics)
            if let left = record.left {
                let name = "\(left.topic)/\(left.partition)/\(left.offset)"
                logger.error(
                    """
                    the worker ended while it was reading event record \(name); if it does so again, \
                    pass over it with kafka.skip: ["\(name)"]
                    """,
                    metadata: [
                        "topic": "\(left.topic)", "partition": .stringConvertible(left.partition),
                        "offset": .stringConvertible(left.offset),
                    ])
            }
            return record
        } catch {
            logger.warning(
                "intake.lastRecordFile cannot be used: no record will be named after a crash",
                metadata: ["file": "\(file)", "cause": "\(error)"])
            return nil
        }
    }
}
