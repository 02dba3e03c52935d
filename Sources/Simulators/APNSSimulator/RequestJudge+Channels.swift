// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Nghttp2
internal import PushModel
internal import Simdjson

/// The path of a request that is about channels: of a broadcast, or of what is done with the channels
/// themselves.
struct ChannelPath {
    let bundleID: UnsafeRawBufferPointer
    /// nil where the path is known and the method is none of its own.
    let service: PendingRequest.Service?

    /// - Returns: nil for any other path.
    init?(_ path: UnsafeRawBufferPointer?, _ method: UnsafeRawBufferPointer?) {
        guard let path, let method else { return nil }
        if let rest = Self.rest(of: path, after: "/4/broadcasts/apps/"),
            !rest.contains(UInt8(ascii: "/"))
        {
            bundleID = rest
            service = method.equals("POST") ? .broadcasts : nil
            return
        }
        guard let rest = Self.rest(of: path, after: "/1/apps/"),
            let slash = rest.firstIndex(of: UInt8(ascii: "/"))
        else { return nil }
        bundleID = UnsafeRawBufferPointer(rebasing: rest[..<slash])
        let what = UnsafeRawBufferPointer(rebasing: rest[slash...])
        if what.equals("/all-channels") {
            service = method.equals("GET") ? .channels(.list) : nil
        } else if what.equals("/channels") {
            service =
                method.equals("POST")
                ? .channels(.create)
                : method.equals("GET")
                    ? .channels(.read) : method.equals("DELETE") ? .channels(.delete) : nil
        } else {
            return nil
        }
    }

    private static func rest(
        of path: UnsafeRawBufferPointer, after prefix: StaticString
    ) -> UnsafeRawBufferPointer? {
        let count = prefix.utf8CodeUnitCount
        guard path.count > count,
            UnsafeRawBufferPointer(rebasing: path.prefix(count)).equals(prefix)
        else { return nil }
        return UnsafeRawBufferPointer(rebasing: path[count...])
    }
}

/// Judges what Apple's pages "Sending broadcast push notification requests to APNs" and "Sending
/// channel management requests to APNs" describe.
extension RequestJudge {
    func judgeChannelHeaders(
        _ path: ChannelPath, _ head: RequestHead, _ block: borrowing HeaderBlock,
        of request: inout PendingRequest, credential: inout ConnectionCredential, now: Int64
    ) {
        request.topic.append(contentsOf: path.bundleID)
        if let channel = head.value(.channelID, in: block) {
            request.token.append(contentsOf: channel)
        }
        let requestID = head.value(.requestID, in: block)
        if let requestID, HeaderText.isUUID(requestID) {
            request.apnsID.append(contentsOf: requestID)
        }
        guard let service = path.service else {
            request.refusal = .methodNotAllowed
            return
        }
        request.service = service
        request.refusal =
            (head.hasDuplicates ? .duplicateHeaders : nil)
            ?? credential.refusal(
                of: head.value(.authorization, in: block), now: now, limits: credentialLimits)
            ?? appRefusal(path.bundleID, credential.key, of: &request)
            ?? (requestID.map { HeaderText.isUUID($0) } ?? true ? nil : .badMessageID)
            ?? channelRefusal(head, block, of: request)
        if request.refusal == nil, case .broadcasts = service {
            request.refusal = Self.broadcastRefusal(head, block)
            let expiration = head.value(.expiration, in: block)
            request.asksForStorage = expiration.map { !$0.equals("0") } ?? false
        }
    }

    /// A bundle identifier with the suffix of a push type names no app.
    private func appRefusal(
        _ bundleID: UnsafeRawBufferPointer, _ key: ProviderTokenRegistry.Key?,
        of request: inout PendingRequest
    ) -> SimulatedAnswer? {
        let known = topics.apps.firstIndex { app in
            app.bundleID.withUnsafeBytes { $0.equals(bundleID) }
        }
        guard let known else { return .topicDisallowed }
        request.app = known
        guard let key, topics.apps[known].teamID == key.settings.teamID else {
            return .topicMismatch
        }
        guard let bundleIDs = key.settings.bundleIDs else { return nil }
        let name = String(decoding: bundleID, as: UTF8.self)
        return bundleIDs.contains(name) ? nil : .topicMismatch
    }

    private func channelRefusal(
        _ head: RequestHead, _ block: borrowing HeaderBlock, of request: PendingRequest
    ) -> SimulatedAnswer? {
        switch request.service {
        case .devices, .channels(.create), .channels(.list): return nil
        case .broadcasts, .channels(.read), .channels(.delete):
            guard let channel = head.value(.channelID, in: block), !channel.isEmpty else {
                return .missingChannelID
            }
            return ChannelID(base64: channel) == nil ? .badChannelID : nil
        }
    }

    private static func broadcastRefusal(
        _ head: RequestHead, _ block: borrowing HeaderBlock
    ) -> SimulatedAnswer? {
        guard let type = head.value(.pushType, in: block) else { return .missingPushType }
        // Apple's page prints the value in two spellings.
        let word = String(decoding: type, as: UTF8.self).lowercased()
        guard word == PushType.liveActivity.name else { return .invalidPushType }
        if let priority = head.value(.priority, in: block) {
            guard priority.equals("10") || priority.equals("5") || priority.equals("1") else {
                return .badPriority
            }
        }
        guard let expiration = head.value(.expiration, in: block) else { return nil }
        return HeaderText.isInteger(expiration) ? nil : .badExpirationDate
    }

    // MARK: Answers

    func broadcastAnswer(
        _ request: PendingRequest, _ environment: PushEnvironment
    ) -> SimulatedAnswer {
        let owner = ChannelBook.Owner(app: request.app, environment: environment)
        let channel = String(decoding: request.token, as: UTF8.self)
        guard let storesLatest = channels.storesLatest(channel, of: owner) else {
            return .channelNotRegistered
        }
        if request.asksForStorage, !storesLatest { return .badExpirationDate }
        if request.body.isEmpty { return .payloadEmpty }
        // Apple's limit for broadcasts.
        if request.body.count > 5120 { return .payloadTooLarge }
        let isUpdate = request.body.withUnsafeBytes { bytes in
            guard let event = (try? parser.parse(bytes))?.object?["aps"]?.object?["event"]?.string
            else { return false }
            return event.equals("update") || event.equals("end")
        }
        return isUpdate ? .accepted : .badRequestPayload
    }

    func channelAnswer(
        _ action: PendingRequest.ChannelAction, _ request: PendingRequest,
        _ environment: PushEnvironment
    ) -> SimulatedAnswer {
        let owner = ChannelBook.Owner(app: request.app, environment: environment)
        let channel = String(decoding: request.token, as: UTF8.self)
        switch action {
        case .create: return creation(request, of: owner)
        case .read:
            guard let storesLatest = channels.storesLatest(channel, of: owner) else {
                return .channelNotRegistered
            }
            let policy = storesLatest ? 1 : 0
            return SimulatedAnswer(
                200, "",
                form: .content(
                    #"{"message-storage-policy":\#(policy),"push-type":"LiveActivity"}"#))
        case .list:
            let channels = channels.list(of: owner).map { "\"\($0)\"" }.joined(separator: ",")
            return SimulatedAnswer(200, "", form: .content(#"{"channels":[\#(channels)]}"#))
        case .delete:
            return channels.delete(channel, of: owner)
                ? SimulatedAnswer(204, "") : .channelNotRegistered
        }
    }

    private func creation(
        _ request: PendingRequest, of owner: ChannelBook.Owner
    ) -> SimulatedAnswer {
        let refusal: SimulatedAnswer?
        var storesLatest = false
        (refusal, storesLatest) = request.body.withUnsafeBytes { bytes in
            guard let object = (try? parser.parse(bytes))?.object else {
                return (.badRequestPayload, false)
            }
            guard let type = object["push-type"]?.string else { return (.missingPushType, false) }
            guard String(decoding: type, as: UTF8.self).lowercased() == PushType.liveActivity.name
            else { return (.invalidPushType, false) }
            guard let policy = object["message-storage-policy"]?.integer, [0, 1].contains(policy)
            else { return (.badRequestParams, false) }
            return (nil, policy == 1)
        }
        if let refusal { return refusal }
        guard let channel = channels.create(storesLatest: storesLatest, of: owner) else {
            return .cannotCreateChannel
        }
        var answer = SimulatedAnswer(201, "")
        answer.channelID = channel
        return answer
    }
}
