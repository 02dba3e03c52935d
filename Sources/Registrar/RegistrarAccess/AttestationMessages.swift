// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// What an app attests a key for.
package struct AttestationSubject: Sendable, Hashable {
    package var app: String
    package var environment: PushEnvironment
    package var installation: String

    package init(app: String, environment: PushEnvironment, installation: String) {
        self.app = app
        self.environment = environment
        self.installation = installation
    }
}

/// The answer to `POST …/installations/{installation}/attest/challenge`.
package struct AttestationChallenge: Sendable {
    /// The app has SHA-256 of this text's UTF-8 attested.
    package let challenge: String
    package let expiresAt: WallTime
}

/// The body of `POST …/installations/{installation}/attest`, and what its path names.
package struct AttestationRequest: Sendable {
    package var app: String
    package var environment: PushEnvironment
    package var installation: String
    /// Base64, as `generateKey` returns it.
    package var keyID: String
    /// Base64 of what `attestKey` returns.
    package var attestation: String
    /// As the registrar sent it.
    package var challenge: String

    var subject: AttestationSubject {
        AttestationSubject(app: app, environment: environment, installation: installation)
    }

    package init(
        app: String, environment: PushEnvironment, installation: String, keyID: String,
        attestation: String, challenge: String
    ) {
        self.app = app
        self.environment = environment
        self.installation = installation
        self.keyID = keyID
        self.attestation = attestation
        self.challenge = challenge
    }
}

/// The answer to it.
package struct IssuedCredential: Sendable {
    /// What the app keeps and sends. It is of no use without the key in the device.
    package let credential: Secret
    package let expiresAt: WallTime
    package let caller: Caller
    /// SHA-256 of the key, in base64.
    package let attestedKey: String
    /// Until when the installation is this key's. It ends before the credential does, so that the app can
    /// attest the next key in time, for which the registrar cannot see that it is the same app's.
    package let claimEnds: WallTime
}
