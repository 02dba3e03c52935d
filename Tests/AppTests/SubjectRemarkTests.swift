// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import Testing

@testable internal import Worker

@Suite struct `A remark on a subject` {
    @Test(
        arguments: [
            ("door-42", nil), ("Tür 42", nil), ("", nil), ("a=b", nil),
            (#""42""#, "quotation marks"), (#"door-"42""#, "quotation marks"),
            (#"{"id":42}"#, "{key:/id} a field"), ("Struct{id=42}", "{key:/id} a field"),
            ("\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}*", "keySchema: int64"),
            ("door-\u{0}\u{0}\u{0}*", "keySchema: int64 or int32"),
            ("\u{FFFD}\u{FFFD}", "bytes that are no text"), ("42\n", "white space"),
            (" 42", "white space"), ("42\r\n", "white space"), ("\u{FEFF}42", "byte order mark"),
        ] as [(String, String?)])
    func `says what is odd about a key that became one`(subject: String, remark: String?) {
        let text = subject.remarkedSubject
        #expect(text.hasPrefix(subject.printable))
        guard let remark else {
            #expect(text == subject)
            return
        }
        #expect(text.contains(remark) && text.hasSuffix(")"), "\(text)")
        #expect(!text.contains("\n") && !text.contains("\u{0}"))
    }
}
