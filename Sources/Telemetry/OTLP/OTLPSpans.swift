// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// Encodes spans as OTLP's `ExportTraceServiceRequest` (opentelemetry-proto 1.x, protobuf).
package enum OTLPSpans {
    /// The most spans of one request: the batch of OpenTelemetry's own SDKs.
    package static let spansMax = 512

    /// - Parameter wallStart: what the wall clock shows when the monotonic clock is at zero, in
    ///   nanoseconds since 1970.
    package static func request(
        _ spans: some Collection<Span>, of resource: OTLPResource, wallStart: Int64
    ) -> [UInt8] {
        resource.export { scope in
            for span in spans { scope.message(2) { write(span, wallStart, to: &$0) } }
        }
    }

    private static func write(
        _ span: Span, _ wallStart: Int64, to message: inout ProtobufWriter
    ) {
        func time(_ time: MonotonicTime) -> UInt64 {
            UInt64(max(0, wallStart &+ time.nanoseconds))
        }
        message.data(1, span.trace.bytes)
        message.data(2, span.id.bytes)
        if let parent = span.parent { message.data(4, parent.bytes) }
        message.text(5, span.name)
        message.varint(6, kind(span.kind))
        message.fixed64(7, time(span.start))
        message.fixed64(8, time(span.end))
        message.attributes(9, span.attributes)
        guard let failure = span.failure else { return }
        message.message(15) { status in
            status.text(2, failure)
            status.varint(3, errorStatus)
        }
    }

    /// `STATUS_CODE_ERROR`.
    private static let errorStatus: UInt64 = 2

    private static func kind(_ kind: Span.Kind) -> UInt64 {
        switch kind {
        case .internal: 1
        case .client: 3
        case .consumer: 5
        }
    }
}
