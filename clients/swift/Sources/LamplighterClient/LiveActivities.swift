// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

#if canImport(ActivityKit) && !os(macOS)
    @preconcurrency import ActivityKit
    import Foundation
    import LamplighterClientCore

    @available(iOS 18.0, *)
    extension Lamplighter {
        /// Registers the tokens of all Live Activities of one type, and the token that starts one, for as
        /// long as the app runs. To be called in a task of its own at each launch, and early: the system
        /// launches the app in the background when a push has started an activity.
        ///
        /// - Parameters:
        ///   - subjects: On what an activity depends.
        ///   - startedBy: Subjects whose events may start an activity on this device; none to leave that
        ///     token alone.
        public func followLiveActivities<Attributes: ActivityAttributes & Sendable>(
            of type: Attributes.Type, subjects: @escaping @Sendable (Attributes) -> [String],
            startedBy: [String] = []
        ) async {
            let kind = String(describing: Attributes.self)
            await withDiscardingTaskGroup { group in
                if !startedBy.isEmpty {
                    group.addTask {
                        for await token in Activity<Attributes>.pushToStartTokenUpdates {
                            let shown = Shown(kind: kind, subjects: startedBy)
                            self.register(
                                .liveActivities,
                                handler: "pushToStart." + Address.handlerName(of: Attributes.self),
                                [Target(token: token, shows: [shown], pushToStart: true)])
                        }
                    }
                }
                var followed: Set<String> = []
                // Those that run already, then those that start.
                for activity in Activity<Attributes>.activities {
                    followed.insert(activity.id)
                    group.addTask {
                        await self.follow(activity, kind, subjects(activity.attributes))
                    }
                }
                for await activity in Activity<Attributes>.activityUpdates
                where followed.insert(activity.id).inserted {
                    group.addTask {
                        await self.follow(activity, kind, subjects(activity.attributes))
                    }
                }
            }
        }

        /// Until the activity ends: an ended one has no use for its token.
        private func follow<Attributes: ActivityAttributes & Sendable>(
            _ activity: Activity<Attributes>, _ kind: String, _ subjects: [String]
        ) async {
            let id = activity.id
            let tokens = Task {
                for await token in activity.pushTokenUpdates {
                    guard !Task.isCancelled else { return }
                    let shown = Shown(kind: kind, subjects: subjects)
                    self.register(
                        .liveActivities, handler: id,
                        [Target(token: token, shows: [shown].withSubjects())])
                }
            }
            for await state in activity.activityStateUpdates
            where state == .ended || state == .dismissed {
                break
            }
            tokens.cancel()
            guard !Task.isCancelled else { return }
            do {
                try client.remove(.liveActivities, handler: id)
            } catch {
                client.report(.outboxFailed(String(describing: error)))
            }
            sendSoon()
        }
    }
#endif
