// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Pipeline
internal import PushModel

extension Diagnosis {
    /// What operators have restricted. It is meant, and yet whoever looks at a worker that does not
    /// send must read it here.
    mutating func checkRestrictions() {
        for (scope, restriction) in status.restrictions.sorted(by: { "\($0.key)" < "\($1.key)" }) {
            let why = restriction.reason.map { ": \($0.printable)" } ?? ""
            report(
                .warning,
                "an operator has restricted \(scope) (\(restriction.action), by "
                    + "\(restriction.by.printable) at \(restriction.at.rfc3339)\(why))",
                "lift it with \(scope.resumeCommand) when it is no longer wanted")
        }
    }
}
