// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import RecordFormats

@testable internal import Pipeline

/// The values of events.
enum EventValue {
    /// An event whose payload is an alert with this text.
    static func alert(_ text: String, collapseID: String? = nil) -> String {
        let collapse = collapseID.map { #","collapseID":"\#($0)""# } ?? ""
        return #"{"v":1,"payload":{"aps":{"alert":"\#(text)"}}\#(collapse)}"#
    }
}

/// A record that the pipeline wants produced.
struct ProducedRecord {
    let topic: RecordTopic
    let key: String
    let value: String
    let ticket: UInt64
    let partition: Int32?
    let endedOffset: Int64?
    let endedPayloadAt: WallTime?
    let traceparent: String?

    /// The dead letter that the value is.
    func letter() throws -> DeadLetter {
        var decoder = DeadLetterDecoder()
        return try Array(value.utf8).withUnsafeBytes { try decoder.letter($0) }
    }
}
