// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import CRdkafka

package enum RdkafkaLibrary {
    /// Of the library that this process has loaded, such as "2.0.2".
    package static var version: String { String(cString: rd_kafka_version_str()) }
}
