// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import CRdkafka

/// A librdkafka error code: negative ones arise in the library, positive ones come from brokers.
package struct ErrorCode: RawRepresentable, Hashable, Sendable {
    package let rawValue: Int32

    package init(rawValue: Int32) { self.rawValue = rawValue }

    init(_ code: rd_kafka_resp_err_t) { rawValue = code.rawValue }

    var native: rd_kafka_resp_err_t { rd_kafka_resp_err_t(rawValue: rawValue) }

    /// The library's name without its prefix, such as `NOT_COORDINATOR` or `_TIMED_OUT`: bounded,
    /// so it is fit for a metric label.
    package var name: String { String(cString: rd_kafka_err2name(native)) }

    /// The library's text for the code, one sentence.
    package var text: String { String(cString: rd_kafka_err2str(native)) }
}

extension ErrorCode: CustomStringConvertible {
    package var description: String { "\(name): \(text)" }
}

extension ErrorCode {
    package static let none = ErrorCode(RD_KAFKA_RESP_ERR_NO_ERROR)

    // Raised by the library.
    package static let partitionEOF = ErrorCode(RD_KAFKA_RESP_ERR__PARTITION_EOF)
    package static let assignPartitions = ErrorCode(RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS)
    package static let revokePartitions = ErrorCode(RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS)
    package static let timedOut = ErrorCode(RD_KAFKA_RESP_ERR__TIMED_OUT)
    /// No broker acknowledged the record within `message.timeout.ms`.
    package static let messageTimedOut = ErrorCode(RD_KAFKA_RESP_ERR__MSG_TIMED_OUT)
    package static let queueFull = ErrorCode(RD_KAFKA_RESP_ERR__QUEUE_FULL)
    package static let fatal = ErrorCode(RD_KAFKA_RESP_ERR__FATAL)
    package static let noOffset = ErrorCode(RD_KAFKA_RESP_ERR__NO_OFFSET)
    package static let transport = ErrorCode(RD_KAFKA_RESP_ERR__TRANSPORT)
    package static let allBrokersDown = ErrorCode(RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN)
    package static let waitingForCoordinator = ErrorCode(RD_KAFKA_RESP_ERR__WAIT_COORD)
    package static let autoOffsetReset = ErrorCode(RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET)
    package static let unsupportedFeature = ErrorCode(RD_KAFKA_RESP_ERR__UNSUPPORTED_FEATURE)
    package static let unknownTopic = ErrorCode(RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC)
    package static let unknownPartition = ErrorCode(RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION)
    package static let invalidArgument = ErrorCode(RD_KAFKA_RESP_ERR__INVALID_ARG)
    package static let failed = ErrorCode(RD_KAFKA_RESP_ERR__FAIL)

    // Answered by a broker.
    package static let messageTooLarge = ErrorCode(RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE)
    package static let offsetOutOfRange = ErrorCode(RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE)
    package static let unknownTopicOrPartition = ErrorCode(
        RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART)
    package static let leaderNotAvailable = ErrorCode(RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE)
    package static let notLeader = ErrorCode(RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION)
    package static let requestTimedOut = ErrorCode(RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT)
    package static let coordinatorLoading = ErrorCode(
        RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS)
    package static let coordinatorNotAvailable = ErrorCode(
        RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE)
    package static let notCoordinator = ErrorCode(RD_KAFKA_RESP_ERR_NOT_COORDINATOR)
    package static let fencedInstanceID = ErrorCode(RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID)
    package static let rebalanceInProgress = ErrorCode(RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS)
    package static let topicAlreadyExists = ErrorCode(RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS)
    package static let topicAuthorizationFailed = ErrorCode(
        RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED)
    package static let invalidRequiredAcks = ErrorCode(RD_KAFKA_RESP_ERR_INVALID_REQUIRED_ACKS)
    package static let groupAuthorizationFailed = ErrorCode(
        RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED)
}

/// What went wrong, in the library's words.
package struct RdkafkaError: Error, Hashable, Sendable, CustomStringConvertible {
    package let code: ErrorCode
    package let message: String

    package init(_ code: ErrorCode, message: String? = nil) {
        self.code = code
        self.message = message ?? code.text
    }

    package var description: String { "\(code.name): \(message)" }

    /// Whether the user may not read the topic. librdkafka says so of a request for an offset in the
    /// text alone: as a reason for which it cannot find the offset where reading is to begin.
    package var isOfAuthorization: Bool {
        code == .topicAuthorizationFailed
            || message.contains(ErrorCode.topicAuthorizationFailed.text)
    }

    /// Takes over an error object of the library's.
    init(adopting error: OpaquePointer) {
        code = ErrorCode(rd_kafka_error_code(error))
        message = String(cString: rd_kafka_error_string(error))
        rd_kafka_error_destroy(error)
    }

    static func check(_ code: rd_kafka_resp_err_t) throws(RdkafkaError) {
        if code != RD_KAFKA_RESP_ERR_NO_ERROR { throw RdkafkaError(ErrorCode(code)) }
    }

    static func check(adopting error: OpaquePointer?) throws(RdkafkaError) {
        if let error { throw RdkafkaError(adopting: error) }
    }
}

/// The librdkafka that is loaded, which is not always the one compiled against.
package enum RdkafkaVersion {
    /// `0xMMmmrrpp`, as in `rd_kafka_version()`.
    package static var number: Int { Int(rd_kafka_version()) }
    package static var text: String { String(cString: rd_kafka_version_str()) }

    /// The version of the header that this program was compiled against, which has only a number,
    /// `0xMMmmrrpp`.
    package static var compiledText: String {
        let number = Int(RD_KAFKA_VERSION)
        return "\(number >> 24).\(number >> 16 & 0xff).\(number >> 8 & 0xff)"
    }
}
