// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import Telemetry

/// The collector that metrics and spans are exported to, by OTLP over HTTP.
package struct CollectorSettings: Sendable {
    /// The base URL, to which the path of each signal is appended.
    package var endpoint: String
    /// The file with the headers of each request, which are secrets; nil for none.
    package var headersFile: String?
    /// The PEM file of trusted roots; nil for the system's.
    package var caFile: String?
    /// The time between two exports of the metrics.
    package var interval: Duration
    package var resource: OTLPResource

    package init(
        endpoint: String, headersFile: String?, caFile: String?, interval: Duration,
        resource: OTLPResource
    ) {
        self.endpoint = endpoint
        self.headersFile = headersFile
        self.caFile = caFile
        self.interval = interval
        self.resource = resource
    }

    /// The URL of a signal, as the OTLP specification makes it of the base URL.
    package func url(of signal: ExportSignal) -> String {
        let base = endpoint.hasSuffix("/") ? String(endpoint.dropLast()) : endpoint
        return "\(base)/v1/\(signal.rawValue)"
    }
}

/// What is exported; the raw value is the end of the URL.
package enum ExportSignal: String, CaseIterable, Sendable {
    case metrics, traces
}
