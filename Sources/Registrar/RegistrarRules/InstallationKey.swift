// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel
internal import RecordFormats

/// One app on one device.
package struct InstallationKey: Hashable, Sendable {
    package let environment: PushEnvironment
    package let app: String
    package let installation: String

    /// The parts must be parts of a record's key (`RecordKey.isPart`).
    package init(environment: PushEnvironment, app: String, installation: String) {
        self.environment = environment
        self.app = app
        self.installation = installation
    }

    /// Whether paths may name an app, an installation or a handler so. `.` and `..`, which records' keys
    /// may have, are taken out of paths by clients and proxies (RFC 3986, 5.2.4).
    package static func isName(_ text: String) -> Bool {
        RecordKey.isPart(text) && text != "." && text != ".."
    }

    /// Reads a record's key; nil if it is not one of a registration.
    package static func read(
        recordKey: UnsafeRawBufferPointer?
    ) -> (key: InstallationKey, handler: String)? {
        guard let parts = RecordKey.names(ofRegistration: recordKey) else { return nil }
        let key = InstallationKey(
            environment: parts.environment, app: parts.app, installation: parts.installation)
        return (key, parts.handler)
    }

    /// The key of the record of one handler.
    package func recordKey(handler keyPart: String) -> [UInt8] {
        RecordKey.registration(
            environment: environment, app: app, installation: installation, handler: keyPart)
    }
}
