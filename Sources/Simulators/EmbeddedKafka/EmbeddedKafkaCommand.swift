// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// A command on standard input; see `EmbeddedKafka.commands`.
package enum EmbeddedKafkaCommand: Hashable, Sendable {
    case down(broker: Int32)
    case up(broker: Int32)
    case roundTrip(broker: Int32, milliseconds: Int32)
    case fail(apiKey: Int16, code: Int32, count: Int)
    case leader(topic: String, partition: Int32, broker: Int32)
    case topic(name: String, partitions: Int32)
    case topicError(name: String, code: Int32)
    case quit

    /// The most faults in one command, since they are allocated at once.
    private static let failuresMax = 100_000

    /// Parses a line; nil if it is not a command.
    package init?(parsing line: String) {
        let words = line.split(whereSeparator: \.isWhitespace).map(String.init)
        func number<Number: FixedWidthInteger>(_ index: Int) -> Number? { Number(words[index]) }
        switch (words.first, words.count) {
        case ("down", 2):
            guard let broker: Int32 = number(1) else { return nil }
            self = .down(broker: broker)
        case ("up", 2):
            guard let broker: Int32 = number(1) else { return nil }
            self = .up(broker: broker)
        case ("rtt", 3):
            guard let broker: Int32 = number(1), let time: Int32 = number(2), time >= 0 else {
                return nil
            }
            self = .roundTrip(broker: broker, milliseconds: time)
        case ("err", 4):
            guard let key: Int16 = number(1), let code: Int32 = number(2),
                let count: Int = number(3), (1...Self.failuresMax).contains(count)
            else { return nil }
            self = .fail(apiKey: key, code: code, count: count)
        case ("leader", 4):
            guard let partition: Int32 = number(2), let broker: Int32 = number(3) else {
                return nil
            }
            self = .leader(topic: words[1], partition: partition, broker: broker)
        case ("topic", 3):
            guard let partitions: Int32 = number(2), partitions > 0 else { return nil }
            self = .topic(name: words[1], partitions: partitions)
        case ("topicerr", 3):
            guard let code: Int32 = number(2) else { return nil }
            self = .topicError(name: words[1], code: code)
        case ("quit", 1):
            self = .quit
        default:
            return nil
        }
    }
}
