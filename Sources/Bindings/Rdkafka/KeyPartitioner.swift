// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import CRdkafka

/// Which partition a key belongs to.
package enum KeyPartitioner {
    /// The partition of a key, as Java's producer and `murmur2_random` choose it.
    package static func murmur2(_ key: some Collection<UInt8>, of partitions: Int32) -> Int32 {
        precondition(partitions > 0, "a topic without partitions")
        return Array(key).withUnsafeBytes {
            // It looks at nothing but the key and the count.
            rd_kafka_msg_partitioner_murmur2(nil, $0.baseAddress, $0.count, partitions, nil, nil)
        }
    }
}
