// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import OTLPExporter
import PushModel
import Testing

@Suite struct `A collector's headers` {
    @Test func `a collector's headers are read from the lines of a file`() throws {
        let headers = try CollectorHeaders(
            text: "# for the collector\r\nAuthorization: Bearer a:b=c\n\n  x-scope :ignored\n"
                .replacing("  x-scope :ignored", with: "  X-Scope-OrgID:\thome  "))
        #expect(headers.lines.map(\.name) == ["Authorization", "X-Scope-OrgID"])
        #expect(headers.lines.map(\.value.text) == ["Bearer a:b=c", "home"])
    }

    @Test(arguments: [
        "secret", ": secret", "a b: secret", "a:", "a:  ", "é: secret", "a: secr\u{7}t",
        "Host: secret", "content-type: secret", "Content-Length: secret",
        String(repeating: "a: secret\n", count: 17),
    ])
    func `anything else is refused, without a word of it`(text: String) {
        do throws(CollectorHeaders.Problem) {
            _ = try CollectorHeaders(text: text)
            Issue.record("\(text) was taken")
        } catch {
            #expect(!error.description.contains("secret"))
        }
    }

    @Test func `a collector's headers are not shown by what holds them`() throws {
        let headers = try CollectorHeaders(text: "Authorization: Bearer hunter")
        var dumped = ""
        dump(headers, to: &dumped)
        #expect(!"\(headers) \(dumped)".contains("hunter"))
    }
}
