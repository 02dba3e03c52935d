// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// The bounds of what schemas and records may ask for.
package struct SchemaLimits: Sendable {
    /// The largest JSON that a key or value may become.
    package var outputBytesMax = 1 << 20

    package init() {}

    /// The largest text of one schema; the largest that Confluent's registry takes is 1 MB by
    /// default.
    package static let textBytesMax = 1 << 20
    /// The largest sum of the texts of a schema and of all that it refers to.
    package static let textsBytesMax = 4 << 20
    /// How many schemas one schema may refer to, directly and through others.
    package static let referencesMax = 200
    /// How many types and fields a schema may have, with those of what it refers to.
    package static let partsMax = 50_000
    /// How long a name may be, its namespace included.
    package static let nameBytesMax = 1024
    /// How deep a schema's own text may nest.
    package static let textDepthMax = 64
    /// How deep records, messages, arrays and maps may nest in a value: as deep as the JSON that is
    /// made of it may.
    package static let depthMax = 60
    /// The longest decimal: 308 digits.
    package static let decimalBytesMax = 128
    /// As many as Avro's decimals may have here, and as PostgreSQL's `numeric(p, s)`.
    package static let decimalScales = -1000...1000
    /// The longest text of digits that is made of a decimal, with its sign: 308 digits and a zero for each
    /// power of ten.
    package static let decimalTextBytesMax = 1 + 308 + decimalScales.upperBound

    /// How many steps a value may take: many times what an honest value of its size does, and few
    /// enough to be over at once. Values that take no bytes, such as an array of a billion
    /// empty records, are held by this bound alone.
    static func steps(bytes: Int) -> Int { 64 << 10 + bytes * 16 }
}
