// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

// developer.apple.com/documentation/activitykit, and the SDK's interface for what is Sendable.
@_exported import FoundationOnApple

// …/activitykit/activityattributes
public protocol ActivityAttributes: Decodable, Encodable {
    associatedtype ContentState: Decodable, Encodable, Hashable
}

// …/activitykit/activitystate
public enum ActivityState: Sendable {
    case active, pending, ended, dismissed, stale
}

/// The shape of ActivityKit's sequences.
public struct StubSequence<Element>: AsyncSequence {
    public struct AsyncIterator: AsyncIteratorProtocol {
        public mutating func next() async -> Element? { fatalError() }
    }
    public func makeAsyncIterator() -> AsyncIterator { fatalError() }
}

// …/activitykit/activity: a class that is not Sendable
public class Activity<Attributes: ActivityAttributes>: Identifiable {
    public typealias PushTokenUpdates = StubSequence<Data>
    public typealias ActivityStateUpdates = StubSequence<ActivityState>
    public typealias ActivityUpdates = StubSequence<Activity<Attributes>>

    public let id: String = { fatalError() }()
    public let attributes: Attributes = { fatalError() }()
    public static var activities: [Activity<Attributes>] { fatalError() }
    public static var activityUpdates: ActivityUpdates { fatalError() }
    public static var pushToStartTokenUpdates: PushTokenUpdates { fatalError() }
    public var pushTokenUpdates: PushTokenUpdates { fatalError() }
    public var activityStateUpdates: ActivityStateUpdates { fatalError() }
}
