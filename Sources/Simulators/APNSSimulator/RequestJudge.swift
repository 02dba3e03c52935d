// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Nghttp2
internal import PushModel
internal import Simdjson

/// Judges requests as APNs does, in two steps: the headers when they are complete, the rest when
/// the request has ended. Each thread has one. It keeps nothing of a request.
final class RequestJudge {
    let topics: TopicBook
    let channels: ChannelBook
    private let tokens: DeviceTokenBook
    /// A random seed, so that clients cannot choose tokens that collide in the hash table.
    private let seed: UInt64
    var parser = JSONParser(bytesMax: PendingRequest.bodyBytesMax)
    var script: Script
    var credentialLimits: ConnectionCredential.Limits
    /// The accepted lengths of device tokens in bytes. The most is twice the 100 bytes that Apple
    /// announced.
    var tokenBytes = 1...tokenBytesMax
    var judgesTokenTopic = true
    var judgesTokenEnvironment = true

    /// - Parameter now: monotonic nanoseconds, from which the rules' durations count.
    init(shared: SimulatorShared, now: Int64) {
        topics = shared.topics
        tokens = shared.tokens
        channels = shared.channels
        seed = shared.tokenSeed
        script = Script(shared.options.rules, now: now)
        credentialLimits = shared.credentialLimits
    }

    // MARK: Headers

    /// Fills in `request`, and sets its `refusal` if the headers are invalid.
    /// - Parameter now: seconds since 1970.
    func judgeHeaders(
        _ block: borrowing HeaderBlock, of request: inout PendingRequest,
        credential: inout ConnectionCredential, now: Int64
    ) {
        let head = RequestHead(block)
        if let service = ChannelPath(head.value(.path, in: block), head.value(.method, in: block)) {
            return judgeChannelHeaders(
                service, head, block, of: &request, credential: &credential, now: now)
        }
        let topic = head.value(.topic, in: block)
        let pushType = head.value(.pushType, in: block)
        if let topic { request.topic.append(contentsOf: topic) }
        if let apnsID = head.value(.apnsID, in: block), HeaderText.isUUID(apnsID) {
            request.apnsID.append(contentsOf: apnsID)
        }
        let pathRefusal = readPath(head.value(.path, in: block), into: &request)
        let isPost = head.value(.method, in: block)?.equals("POST") ?? false
        request.refusal =
            (isPost ? nil : .methodNotAllowed)
            ?? pathRefusal
            ?? (head.hasDuplicates ? .duplicateHeaders : nil)
            ?? credential.refusal(
                of: head.value(.authorization, in: block), now: now, limits: credentialLimits)
            ?? topicRefusal(type: pushType, topic: topic, key: credential.key, of: &request)
            ?? Self.optionsRefusal(
                head, block, isBackground: pushType != nil && request.type == Self.background)
    }

    private static let background = Int(PushType.background.rawValue)
    private static let alert = Int(PushType.alert.rawValue)

    private static let tokenBytesMax = 200

    private func readPath(
        _ path: UnsafeRawBufferPointer?, into request: inout PendingRequest
    ) -> SimulatedAnswer? {
        // "/3/device/" has 10 bytes; without the last slash the token is missing too.
        guard let path, path.count >= 9,
            UnsafeRawBufferPointer(rebasing: path.prefix(9)).equals("/3/device")
        else { return .badPath }
        guard path.count > 9 else { return .missingDeviceToken }
        guard path[9] == 0x2F else { return .badPath }
        let digits = UnsafeRawBufferPointer(rebasing: path[10...])
        guard !digits.isEmpty else { return .missingDeviceToken }
        var isHex = digits.count % 2 == 0 && tokenBytes.contains(digits.count / 2)
        for digit in digits.prefix(2 * Self.tokenBytesMax) {
            let isDigit = HeaderText.isHexDigit(digit)
            isHex = isHex && isDigit
            // 0x20 turns A to F into a to f and does not change 0 to 9.
            request.token.append(isDigit ? digit | 0x20 : digit)
        }
        return isHex ? nil : .badDeviceToken
    }

    private func topicRefusal(
        type name: UnsafeRawBufferPointer?, topic: UnsafeRawBufferPointer?,
        key: ProviderTokenRegistry.Key?, of request: inout PendingRequest
    ) -> SimulatedAnswer? {
        var type: Int?
        if let name {
            type = topics.pushType(named: name)
            if type == nil { return .invalidPushType }
        }
        guard let topic, !topic.isEmpty else { return .missingTopic }
        switch topics.match(topic, type: type) {
        case .unknown: return .topicDisallowed
        case .wrongSuffix: return .badTopic
        case .topic(let app, let matched):
            request.app = app
            // Without a push type the bare topic means an alert: Apple recommends the header but
            // does not require it.
            let isBare = type == nil && topics.rows[matched].suffix.isEmpty
            request.type = isBare ? Self.alert : matched
        }
        let app = topics.apps[request.app]
        guard let key, app.teamID == key.settings.teamID else { return .topicDisallowed }
        guard let bundleIDs = key.settings.bundleIDs else { return nil }
        let bundleID = String(decoding: app.bundleID, as: UTF8.self)
        return bundleIDs.contains(bundleID) ? nil : .topicDisallowed
    }

    private static func optionsRefusal(
        _ head: RequestHead, _ block: borrowing HeaderBlock, isBackground: Bool
    ) -> SimulatedAnswer? {
        if let priority = head.value(.priority, in: block) {
            let isLow = priority.equals("5")
            guard isLow || priority.equals("10") || priority.equals("1") else {
                return .badPriority
            }
            if isBackground && !isLow { return .badPriority }
        } else if isBackground {
            // A missing priority means 10, which is an error here.
            return .badPriority
        }
        if let expiration = head.value(.expiration, in: block),
            !HeaderText.isInteger(expiration)
        {
            return .badExpirationDate
        }
        if let apnsID = head.value(.apnsID, in: block), !HeaderText.isUUID(apnsID) {
            return .badMessageID
        }
        // Apple's limit is 64 bytes.
        if let collapseID = head.value(.collapseID, in: block), collapseID.count > 64 {
            return .badCollapseID
        }
        return nil
    }

    // MARK: The rest

    /// The answer that APNs would give, 200 included, apart from scripted rules.
    /// - Parameter now: nanoseconds since 1970.
    func answer(
        _ request: PendingRequest, environment: PushEnvironment, now: Int64
    ) -> (answer: SimulatedAnswer, isUnremembered: Bool) {
        if let refusal = request.refusal { return (refusal, false) }
        switch request.service {
        case .devices: break
        case .broadcasts: return (broadcastAnswer(request, environment), false)
        case .channels(let action): return (channelAnswer(action, request, environment), false)
        }
        if let refusal = bodyRefusal(request) { return (refusal, false) }
        let owner = topics.owner(app: request.app, type: request.type, environment)
        let hash = request.token.withUnsafeBytes { StableHash.hash64($0, seed: seed) }
        switch tokens.look(hash, owner: owner, now: now) {
        case .belongs: return (.accepted, false)
        case .unremembered: return (.accepted, true)
        case .tooSoon: return (.tooManyRequests, false)
        case .belongsTo(let known):
            if judgesTokenEnvironment && known & 1 != owner & 1 { return (.badDeviceToken, false) }
            if judgesTokenTopic && known >> 1 != owner >> 1 {
                return (.deviceTokenNotForTopic, false)
            }
            return (.accepted, false)
        }
    }

    private static let contentChanged = Array(#"{"aps":{"content-changed":true}}"#.utf8)
    private static let contentAvailable = Array(#"{"aps":{"content-available":1}}"#.utf8)

    /// The answer that refuses the body; nil if it is valid. Apple documents no reason for a body
    /// that is not JSON or has no `aps`; this simulator answers `PayloadEmpty`.
    private func bodyRefusal(_ request: PendingRequest) -> SimulatedAnswer? {
        // Nearly every body is one of these two, which need no parsing.
        if request.body == Self.contentChanged || request.body == Self.contentAvailable {
            return nil
        }
        if request.body.isEmpty { return .payloadEmpty }
        let row = topics.rows[request.type]
        if request.body.count > row.bodyBytesMax { return .payloadTooLarge }
        let isWellFormed = request.body.withUnsafeBytes { bytes in
            guard let object = (try? parser.parse(bytes))?.object else { return false }
            return !row.needsAPS || object["aps"]?.object != nil
        }
        return isWellFormed ? nil : .payloadEmpty
    }
}
