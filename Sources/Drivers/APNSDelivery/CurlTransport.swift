// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Curl

/// The second transport, on libcurl. It costs about ten times the CPU of `NGHTTP2Transport`, and
/// unlike that one it can use an HTTP proxy.
///
/// It keeps the same contract, apart from these limits of libcurl 7.88: it sees neither SETTINGS
/// nor GOAWAY nor REFUSED_STREAM, so a request that was sent and not answered has an unknown
/// outcome even if the server refused it; it sends neither PING nor GOAWAY; and it connects only
/// when there is something to send. libcurl also reports nothing from which the counters `goAways`,
/// `refused`, `bytesSent` and `bytesReceived` could be kept, so they stay 0.
package struct CurlTransport: PushTransport {
    package let duty: DeliveryDuty

    package init(_ duty: DeliveryDuty) { self.duty = duty }

    package func deliver(at core: consuming DeliveryCore) {
        precondition(CurlLibrary.speaksHTTP2, "libcurl speaks HTTP/2: \(CurlLibrary.version)")
        var loop = CurlDeliveryLoop(core: core)
        loop.run()
    }
}
