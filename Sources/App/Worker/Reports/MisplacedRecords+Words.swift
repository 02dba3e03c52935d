// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import KafkaLog
internal import PushModel

extension MisplacedRecords {
    /// What is wrong with the topic, as text that a sentence can begin with.
    package var text: String {
        "\(count.counted("record")) of \(topic) \(count == 1 ? "is" : "are") not in the "
            + "\(count == 1 ? "partition of its key" : "partitions of their keys"), such as \(partition)/\(offset), which belongs in "
            + "partition \(belongsIn): after a restart an older one may win"
    }

    /// What to do.
    package static let remedy =
        "set partitioner=murmur2_random in what writes them, unless the topic has just got more "
        + "partitions, and write them again (docs/kafka.md, Partitioner)"
}
