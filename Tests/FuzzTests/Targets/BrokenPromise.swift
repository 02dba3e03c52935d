// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import RecordFormats

/// A promise about every input that one input breaks.
struct BrokenPromise: Error, CustomStringConvertible {
    let description: String
}

/// Throws unless the promise is kept.
func promise(_ isKept: Bool, _ broken: @autoclosure () -> String) throws {
    if !isKept { throw BrokenPromise(description: broken()) }
}

/// A text for a log or a terminal is one line, not endless, and moves no cursor.
func promiseLine(_ text: String, bytesMax: Int = 2000) throws {
    try promise(!text.isEmpty && text.utf8.count <= bytesMax, "\(text.utf8.count) bytes of text")
    let stray = text.unicodeScalars.first { scalar in
        switch scalar.properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator: true
        default: false
        }
    }
    try promise(stray == nil, "U+\(String(stray?.value ?? 0, radix: 16)) in the text of a line")
}

/// What is wrong with a record becomes a metric's label and a dead letter's text.
func promiseReason(_ error: UnreadableRecord) throws {
    try promise(UnreadableCode(rawValue: error.code) != nil, "\(error.code) is no known code")
    try promiseLine(error.message)
}
