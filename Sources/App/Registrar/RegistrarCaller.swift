// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import HTTPListener
package import PushModel
package import Registering

/// Somebody who has proved who they are.
package struct RegistrarCaller: Sendable {
    /// Goes into the audit line, and has a rate of its own. Never a secret.
    package var id: String
    package var allowsInstallation: @Sendable (PushEnvironment, _ app: String, String?) -> Bool
    package var allowsSubject: @Sendable (String) -> Bool

    package init(
        id: String,
        allowsInstallation: @escaping @Sendable (PushEnvironment, String, String?) -> Bool = {
            _, _, _ in true
        },
        allowsSubject: @escaping @Sendable (String) -> Bool = { _ in true }
    ) {
        self.id = id
        self.allowsInstallation = allowsInstallation
        self.allowsSubject = allowsSubject
    }
}

/// Tells who makes a request.
package protocol CallerCheck: Sendable {
    func caller(
        of question: HTTPQuestion, _ environment: PushEnvironment, app: String,
        installation: String?
    ) -> Result<RegistrarCaller, Problem>

    /// Answers a request for a challenge, or an attestation.
    func attest(_ question: HTTPQuestion, _ route: RegistrarRoute) -> HTTPAnswer
}
