// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import CRdkafka

/// What a callback of the library reported, kept until the polling thread asks for it.
package struct ClientNews {
    /// In the order in which they happened.
    package var rebalances: [Rebalance] = []
    /// Errors of the client as a whole, and commits that failed.
    package var errors: [RdkafkaError] = []
    /// Errors beyond `errorsMax`, which were not kept.
    package var droppedErrors = 0

    /// An outage raises one error per broker and reconnection attempt; nobody reads more.
    static let errorsMax = 64

    mutating func append(_ error: RdkafkaError) {
        if errors.count < Self.errorsMax {
            errors.append(error)
        } else {
            droppedErrors += 1
        }
    }
}

/// The group's coordinator gives or takes partitions. The library waits (and keeps sending
/// heartbeats) until it is answered by one of the assign and unassign calls of `Client`.
package struct Rebalance {
    /// `assignPartitions`, `revokePartitions`, or what went wrong.
    package let code: ErrorCode
    package let partitions: TopicPartitionList
    /// Whether the partitions already belong to another member, so that no offset of them can be
    /// committed.
    package let isLost: Bool
}

/// The end of one produced message.
package struct DeliveryReport: Sendable {
    package let ticket: UInt64
    /// `none` when all in-sync replicas have it.
    package let code: ErrorCode
    /// Where it was written; of use only without an error.
    package let partition: Int32
    package let offset: Int64
}

/// The callbacks of one client. All but `log` and `tokens` run inside poll calls.
final class ClientContext: @unchecked Sendable {
    // SAFETY: `log`, `tokens` and `troubles` are immutable and Sendable, and `recipient` is set
    // before the thread that reads it begins to serve; nothing else is touched by library threads.
    // The rest is touched by the one thread that polls the client.
    let log: Client.LogSink
    let troubles: ConnectionTroubles
    private let tokens: Client.TokenRefresh?
    var recipient: TokenRecipient?
    var news = ClientNews()
    var hasNews = false
    var reports: [DeliveryReport] = []

    init(
        tokens: Client.TokenRefresh?, log: @escaping Client.LogSink,
        redact: @escaping @Sendable (String) -> String
    ) {
        self.tokens = tokens
        self.log = log
        troubles = ConnectionTroubles(redact: redact)
    }

    /// The context outlives the client: `Client` holds it, and destroys the handle in `deinit`,
    /// before its properties are released.
    func install(in configuration: OpaquePointer, kind: Client.Kind) {
        let opaque = Unmanaged.passUnretained(self).toOpaque()
        rd_kafka_conf_set_opaque(configuration, opaque)
        rd_kafka_conf_set_log_cb(configuration) { client, level, facility, text in
            guard let client, let opaque = rd_kafka_opaque(client) else { return }
            let facility = facility.map { String(cString: $0) } ?? ""
            let text = text.map { String(cString: $0) } ?? ""
            let context = ClientContext.from(opaque)
            context.troubles.note(facility: facility, text)
            context.log(level, facility, text)
        }
        rd_kafka_conf_set_error_cb(configuration) { client, code, reason, opaque in
            ClientContext.from(opaque!).errorRaised(client!, ErrorCode(rawValue: code), reason)
        }
        if tokens != nil { installTokenCallback(in: configuration) }
        installCertificateCallback(in: configuration)
        switch kind {
        case .consumer:
            installConsumerCallbacks(in: configuration)
        case .producer:
            rd_kafka_conf_set_dr_msg_cb(configuration) { _, message, opaque in
                let message = message!.pointee
                let report = DeliveryReport(
                    ticket: UInt64(UInt(bitPattern: message._private)),
                    code: ErrorCode(message.err), partition: message.partition,
                    offset: message.offset)
                ClientContext.from(opaque!).reports.append(report)
            }
        }
    }

    /// Puts the callback on a queue of its own, which the library's background thread serves:
    /// requests for metadata and administration wait for a token while nobody polls.
    private func installTokenCallback(in configuration: OpaquePointer) {
        rd_kafka_conf_enable_sasl_queue(configuration, 1)
        rd_kafka_conf_set_oauthbearer_token_refresh_cb(configuration) { client, _, opaque in
            let context = ClientContext.from(opaque!)
            guard let recipient = context.recipient else { return }
            do {
                try context.tokens?(recipient)
            } catch {
                Client.refuseToken(of: client!, "\(error)")
            }
        }
    }

    /// Notes why OpenSSL refuses a certificate, which nobody would know otherwise, and keeps its
    /// decision.
    private func installCertificateCallback(in configuration: OpaquePointer) {
        let name = "enable.ssl.certificate.verification"
        // Where nothing is verified the library would call it all the same, and complain.
        guard Configuration.value(of: name, in: configuration) == "true" else { return }
        rd_kafka_conf_set_ssl_cert_verify_cb(configuration) {
            _, broker, _, code, _, _, _, text, size, opaque in
            guard let code, code.pointee != 0 else { return 1 }
            let refusal = CertificateRefusal(
                broker: broker.map { String(cString: $0) } ?? "", code: code.pointee)
            ClientContext.from(opaque!).troubles.note(refusal)
            if let text, size > 0 {
                let reason = refusal.reason.utf8.prefix(size - 1)
                for (index, byte) in reason.enumerated() { text[index] = CChar(byte) }
                text[reason.count] = 0
            }
            return 0
        }
    }

    private func installConsumerCallbacks(in configuration: OpaquePointer) {
        rd_kafka_conf_set_rebalance_cb(configuration) { client, code, partitions, opaque in
            let context = ClientContext.from(opaque!)
            // Asked here because an answer to the rebalance resets it.
            let isLost = rd_kafka_assignment_lost(client) != 0
            context.news.rebalances.append(
                Rebalance(
                    code: ErrorCode(code), partitions: TopicPartitionList(copying: partitions!),
                    isLost: isLost))
            context.hasNews = true
        }
        rd_kafka_conf_set_offset_commit_cb(configuration) { _, code, _, opaque in
            let code = ErrorCode(code)
            guard code != .none, code != .noOffset else { return }
            let context = ClientContext.from(opaque!)
            context.news.append(RdkafkaError(code, message: "offset commit failed: \(code.text)"))
            context.hasNews = true
        }
    }

    private func errorRaised(
        _ client: OpaquePointer, _ code: ErrorCode, _ reason: UnsafePointer<CChar>?
    ) {
        let reason = reason.map { String(cString: $0) }
        news.append(RdkafkaError(code, message: reason))
        hasNews = true
    }

    func takeNews() -> ClientNews {
        defer {
            news = ClientNews()
            hasNews = false
        }
        return news
    }

    private static func from(_ opaque: UnsafeMutableRawPointer) -> ClientContext {
        Unmanaged<ClientContext>.fromOpaque(opaque).takeUnretainedValue()
    }
}
