// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// The version and commit that a worker was built from.
package struct ServiceBuild: Sendable {
    package var version = ""
    package var commit = ""

    package init() {}

    package init(version: String, commit: String) {
        self.version = version
        self.commit = commit
    }
}
