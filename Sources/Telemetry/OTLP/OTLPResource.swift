// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// Who exports: the resource and the instrumentation scope that every export names.
package struct OTLPResource: Sendable {
    package var attributes: [Span.Attribute]
    /// The version of this program.
    package var version: String

    package init(attributes: [Span.Attribute], version: String) {
        self.attributes = attributes
        self.version = version
    }

    /// Writes what an export of metrics and one of spans have in common: one resource, in which
    /// one scope has everything. Their fields have the same numbers in both.
    func export(_ write: (inout ProtobufWriter) -> Void) -> [UInt8] {
        var request = ProtobufWriter()
        request.message(1) { resourceSignals in
            resourceSignals.message(1) { $0.attributes(1, attributes) }
            resourceSignals.message(2) { scopeSignals in
                scopeSignals.message(1) { scope in
                    scope.text(1, "lamplighter")
                    scope.text(2, version)
                }
                write(&scopeSignals)
            }
        }
        return request.bytes
    }
}

extension ProtobufWriter {
    /// Writes each attribute as a `KeyValue`.
    mutating func attributes(_ field: UInt64, _ attributes: [Span.Attribute]) {
        for attribute in attributes {
            message(field) { pair in
                pair.text(1, attribute.name)
                pair.message(2) { value in
                    switch attribute.value {
                    case .text(let text): value.present(1, text: text)
                    case .flag(let flag): value.present(2, varint: flag ? 1 : 0)
                    case .integer(let integer):
                        value.present(3, varint: UInt64(bitPattern: Int64(integer)))
                    }
                }
            }
        }
    }
}
