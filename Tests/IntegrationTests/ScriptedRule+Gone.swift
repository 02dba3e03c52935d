// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import APNSSimulator
import PushModel

extension ScriptedRule {
    /// `410 Unregistered` for one token.
    static func gone(_ token: TestToken, at time: WallTime) -> ScriptedRule {
        ScriptedRule(
            tokenPrefix: token.hex, answer: .gone("Unregistered", .at(time.milliseconds)))
    }
}
