// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import APNSSimulator
import ArgumentParser

extension ScriptedRule: ExpressibleByArgument {
    /// `STATUS[:REASON][@SHARE%|@TOKENPREFIX]`. Without a reason the body is empty; the reason
    /// `html` makes it a page; a 410 says that the token died just now.
    package init?(argument: String) {
        let parts = argument.split(separator: "@", maxSplits: 1).map(String.init)
        let answer = parts[0].split(separator: ":", maxSplits: 1).map(String.init)
        guard let status = UInt16(answer[0]), (200...599).contains(status) else { return nil }
        self.init(answer: Self.answer(status, answer.count > 1 ? answer[1] : ""))
        guard parts.count > 1 else { return }
        if parts[1].hasSuffix("%") {
            guard let percent = Double(parts[1].dropLast()), (0...100).contains(percent) else {
                return nil
            }
            share = percent / 100
        } else {
            guard parts[1].allSatisfy(\.isHexDigit) else { return nil }
            tokenPrefix = parts[1].lowercased()
        }
    }

    private static func answer(_ status: UInt16, _ reason: String) -> ScriptedAnswer {
        switch (status, reason) {
        case (_, ""): .emptyBody(status)
        case (_, "html"): .html(status)
        case (410, _): .gone(reason, .fromNow(.zero))
        default: .reason(status, reason)
        }
    }
}
