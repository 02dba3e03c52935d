// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Curl

/// The second transport: libcurl. It costs about ten times the CPU of `NGHTTP2Transport` and goes
/// through HTTP proxies, which that one does not.
///
/// It keeps the same contract, with these differences, all libcurl 7.88's: it sees neither SETTINGS
/// nor GOAWAY nor REFUSED_STREAM, so a request that was sent and not answered has an unknown end
/// even where the server refused it; it sends neither PING nor GOAWAY; and it connects when there
/// is something to send, not ahead of it. Nor does libcurl tell anything that would make the
/// counters `goAways`, `refused`, `bytesSent` and `bytesReceived`: they stay 0.
package struct CurlTransport: PushTransport {
    package let duty: DeliveryDuty

    package init(_ duty: DeliveryDuty) { self.duty = duty }

    /// Whether `PoolSettings.proxy` may say so.
    package static func understands(proxy: String) -> Bool { HTTPProxy(proxy) != nil }

    package func deliver(at desk: consuming DeliveryDesk) {
        precondition(CurlLibrary.speaksHTTP2, "\(CurlLibrary.version) was built without HTTP/2")
        var loop = CurlDeliveryLoop(desk: desk)
        loop.run()
    }
}
