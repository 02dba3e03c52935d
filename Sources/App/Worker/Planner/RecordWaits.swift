// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import SchemaRegistry

/// Records of events that cannot be read yet, and what they wait for.
struct RecordWaits {
    var held = HeldPartitions()
    /// This worker's clock.
    var clock = ClockHold()
    /// Tells what is known of schemas; nil where no registry is configured.
    let schemas: SchemaSource?
    /// Whether records of each events topic have a schema.
    let hasSchema: [Bool]
}
