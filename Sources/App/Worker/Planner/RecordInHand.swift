// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import Configuration
package import LinuxIO
internal import Logging

/// Notes which event record is being read, in a file that outlives a crash
/// (`intake.lastRecordFile`). Otherwise an operator could not tell which record crashes the worker
/// at each restart.
///
/// It costs a few stores into mapped memory per record, and no system call.
package final class RecordInHand: Sendable {
    private let words: SharedWords

    /// The record that the previous process was reading when it ended; nil if there was none.
    package let left: Configuration.Kafka.RecordCoordinates?

    // Positions of the words in the file. The topic's is written last and cleared first.
    private static let topic = 0
    private static let partition = 1
    private static let offset = 2

    /// - Parameter topics: the event topics in the worker's order. Their names are written to the
    ///   file, since the next process may number them differently.
    package init(file: String, topics: [String]) throws(SystemError) {
        words = try SharedWords(path: file)
        left = Self.coordinates(in: words)
        words[Self.topic] = 0
        words.rewrite(text: topics.joined(separator: "\n"))
    }

    /// Notes that reading of a record begins.
    func take(topic: Int, partition: Int32, offset: Int64) {
        words[Self.partition] = UInt64(UInt32(bitPattern: partition))
        words[Self.offset] = UInt64(bitPattern: offset)
        words[Self.topic] = UInt64(topic) + 1
    }

    /// Notes that the record has been read or skipped.
    func putDown() { words[Self.topic] = 0 }

    /// The record noted in the file; nil if there is none, or if the file has another format.
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
    /// Logs the record that the previous process left in the file, and opens the file for this one.
    /// A file that cannot be used does not stop the worker.
    func recordInHand(topics: [String], logger: Logger) -> RecordInHand? {
        guard let file = intake.lastRecordFile else { return nil }
        do throws(SystemError) {
            let record = try RecordInHand(file: file, topics: topics)
            if let left = record.left {
                let name = "\(left.topic)/\(left.partition)/\(left.offset)"
                logger.error(
                    """
                    the previous process ended while it was reading an event record; if that happens \
                    again with the same one, name it in kafka.skip
                    """,
                    metadata: [
                        "record": "\(name)",
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
