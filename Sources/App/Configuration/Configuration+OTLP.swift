// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FoundationEssentials
package import OTLPExporter
internal import PushModel
internal import Telemetry

extension Configuration {
    /// Where metrics and spans are exported to.
    package struct OTLP: Sendable {
        /// The base URL of the collector; nil exports nothing.
        package var endpoint: String?
        package var headersFile: String?
        package var caFile: String?
        package var interval = Duration.seconds(15)
        /// The share of the events without a `traceparent` that are traced.
        package var sampling = 0.0
        /// Attributes of the resource beside those that the worker knows.
        package var attributes: [String: String] = [:]
    }

    /// The collector to export to; nil if none is configured.
    ///
    /// - Parameter worker: the name of this worker, which tells it from the others.
    package func collectorSettings(worker: String, version: String) -> CollectorSettings? {
        guard let endpoint = otlp.endpoint else { return nil }
        var attributes = [
            "service.name": "lamplighter", "service.instance.id": worker,
            "service.version": version, "messaging.consumer.group.name": kafka.group,
        ]
        attributes.merge(otlp.attributes) { $1 }
        return CollectorSettings(
            endpoint: endpoint, headersFile: otlp.headersFile, caFile: otlp.caFile,
            interval: otlp.interval,
            resource: OTLPResource(
                attributes: attributes.sorted { $0.key < $1.key }.map {
                    Span.Attribute($0.key, .text($0.value))
                }, version: version))
    }

    func checkOTLP(_ reader: inout SettingReader) {
        let path = ["otlp", "headersFile"]
        if let file = otlp.headersFile, reader.isSound(path) {
            do throws(CollectorHeaders.Problem) {
                _ = try CollectorHeaders(file: file)
            } catch {
                reader.report(
                    path, wrong: "is \(file), which \(error)",
                    remedy: "write a header a line, such as `Authorization: Bearer …`")
            }
        }
        for (key, isSet) in [
            ("headersFile", otlp.headersFile != nil), ("caFile", otlp.caFile != nil),
            ("sampling", otlp.sampling > 0), ("attributes", !otlp.attributes.isEmpty),
        ] where isSet && otlp.endpoint == nil && reader.isSound(["otlp"]) {
            reader.report(
                ["otlp", key], wrong: "is set without otlp.endpoint",
                remedy: "name the collector, or leave it out")
        }
    }

    /// What an operator should know of an endpoint without TLS; nil if nothing.
    var otlpNotice: String? {
        guard let endpoint = otlp.endpoint, otlp.headersFile != nil, endpoint.hasPrefix("http:"),
            let host = URLComponents(string: endpoint)?.host,
            !["localhost", "127.0.0.1", "[::1]", "::1"].contains(host)
        else { return nil }
        return "otlp.endpoint is http://, so the headers of otlp.headersFile cross the network "
            + "unencrypted: use https://"
    }
}

extension Configuration.OTLP {
    static var keys: [ConfigurationKey<Self>] {
        [
            .optional(
                "endpoint", \.endpoint,
                .text(
                    "a URL such as https://collector:4318",
                    matching: #"https?://[A-Za-z0-9._\-\[\]:]+(?:/[A-Za-z0-9._~/\-]*)?"#),
                "The base URL of an OpenTelemetry collector, to which `/v1/metrics` and `/v1/traces` "
                    + "are appended. Without it nothing is exported."),
            .optional(
                "headersFile", \.headersFile, .file,
                "A file with a header a line for each request, such as `Authorization: Bearer …`; "
                    + "read anew each time."),
            .optional(
                "caFile", \.caFile, .file,
                "PEM file of the roots to trust instead of the system's."),
            .value(
                "interval", \.interval, .duration(.seconds(1) ... .seconds(3600)),
                "How often metrics are exported. Spans go after 5 s at the latest."),
            .value(
                "sampling", \.sampling, .fraction(0...1),
                "The share of the events without a `traceparent` that are traced. One with a "
                    + "`traceparent` is traced if its sampled flag is set."),
            .map(
                "attributes", \.attributes,
                names: NameRule(
                    placeholder: "<attribute>", notation: "an attribute's name such as `a.b`",
                    pattern: "[a-z][a-z0-9_.]{0,63}", variableSeparator: ".", countMax: 32),
                to: .text(
                    "1 to 256 printable ASCII characters", matching: "[\\x20-\\x7E]{1,256}"),
                showing: { $1 },
                "Further attributes of the resource, such as `deployment.environment.name`; or other "
                    + "values for `service.name`, `service.instance.id`, `service.version` and "
                    + "`messaging.consumer.group.name`."),
        ]
    }
}
