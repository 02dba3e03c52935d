// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import CRdkafka
internal import Glibc

/// Properties for a client. Lent to `Client.init`, which copies them, so one configuration can
/// start several clients.
package struct Configuration: ~Copyable {
    let pointer: OpaquePointer

    package init() { pointer = rd_kafka_conf_new() }

    deinit { rd_kafka_conf_destroy(pointer) }

    package func set(_ name: String, _ value: String) throws(ConfigurationError) {
        var text = [CChar](repeating: 0, count: 512)
        switch rd_kafka_conf_set(pointer, name, value, &text, text.count) {
        case RD_KAFKA_CONF_OK:
            return
        case RD_KAFKA_CONF_UNKNOWN:
            throw .unknownProperty(name)
        default:
            throw .invalidValue(property: name, message: String(nulTerminated: text))
        }
    }

    /// The value in force, the library's default included; nil for an unknown property.
    package func value(of name: String) -> String? { Self.value(of: name, in: pointer) }

    static func value(of name: String, in pointer: OpaquePointer) -> String? {
        var size = 0
        guard rd_kafka_conf_get(pointer, name, nil, &size) == RD_KAFKA_CONF_OK else { return nil }
        var text = [CChar](repeating: 0, count: size)
        guard rd_kafka_conf_get(pointer, name, &text, &size) == RD_KAFKA_CONF_OK else { return nil }
        return String(nulTerminated: text)
    }

    /// Every property that the library knows: the first column of its reference.
    package static var names: [String] {
        var text: UnsafeMutablePointer<CChar>?
        var count = 0
        guard let stream = open_memstream(&text, &count) else { return [] }
        rd_kafka_conf_properties_show(stream)
        fclose(stream)
        defer { free(text) }
        guard let text else { return [] }
        return String(cString: text).split(separator: "\n").compactMap { line in
            let columns = line.split(separator: "|", maxSplits: 1)
            guard columns.count == 2 else { return nil }
            let name = String(columns[0].filter { $0 != " " })
            return name.contains(".") || ["acks", "debug", "retries"].contains(name) ? name : nil
        }
    }
}

package enum ConfigurationError: Error, Hashable, Sendable {
    case unknownProperty(String)
    /// The message is the library's and may quote the value.
    case invalidValue(property: String, message: String)
}

extension String {
    init(nulTerminated text: [CChar]) {
        let bytes = text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
        self = String(decoding: bytes, as: UTF8.self)
    }
}
