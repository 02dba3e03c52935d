// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import Configuration

/// The process that writes a log, as named in each JSON line.
package struct LogSource: Sendable {
    /// The name of this process, unique in its group.
    package var worker: String?
    /// The version of Lamplighter.
    package var version: String?
    package var group: String?

    package init(worker: String? = nil, version: String? = nil, group: String? = nil) {
        self.worker = worker
        self.version = version
        self.group = group
    }
}

extension Configuration {
    /// The worker's name in the log: `kafka.groupInstanceID` if configured, which outlives the
    /// process; otherwise the host's name, which in Kubernetes is the pod's, and the process ID.
    package func workerName(host: String, process: Int32) -> String {
        kafka.groupInstanceID ?? "\(host)-\(process)"
    }
}
