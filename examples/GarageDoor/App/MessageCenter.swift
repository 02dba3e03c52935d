// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Foundation
import WidgetKit

/// The user's messages. A push only says that there are others now; the app fetches them, shares them
/// with its widget through the app group, and has the widget drawn anew.
enum MessageCenter {
    static func refresh() async throws -> [Message] {
        let messages = try await Garage.backend.messages()
        Garage.defaults.set(try JSONEncoder().encode(messages), forKey: "messages")
        WidgetCenter.shared.reloadTimelines(ofKind: Garage.messagesWidgetKind)
        return messages
    }
}
