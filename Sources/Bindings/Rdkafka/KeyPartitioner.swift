// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import CRdkafka

/// Which partition a key belongs to.
package enum KeyPartitioner {
    /// The partition of a key, as Java's producer and `murmur2_random` choose it.
    package static func murmur2(_ key: some Collection<UInt8>, of partitions: Int32) -> Int32 {
        Array(key).withUnsafeBytes { murmur2(bytes: $0, of: partitions) }
    }

    /// The same for a key that is lent.
    package static func murmur2(bytes key: UnsafeRawBufferPointer, of partitions: Int32) -> Int32 {
        precondition(partitions > 0, "a topic has at least one partition")
        // It looks at nothing but the key and the count.
        return rd_kafka_msg_partitioner_murmur2(
            nil, key.baseAddress, key.count, partitions, nil, nil)
    }
}
