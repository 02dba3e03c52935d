// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import AppIntents
import Foundation
import SwiftUI
import WidgetKit

/// Shows what the app has put into the app group: it never asks the backend, since a background push
/// wakes the app, which fetches for both.
struct MessagesWidget: Widget {
    var body: some WidgetConfiguration {
        StaticConfiguration(kind: Garage.messagesWidgetKind, provider: MessagesTimeline()) {
            entry in
            MessagesView(entry: entry)
        }
        .configurationDisplayName("Messages")
        .supportedFamilies([.systemMedium])
    }
}

struct MessagesEntry: TimelineEntry {
    var date: Date
    var messages: [Message]
}

struct MessagesTimeline: TimelineProvider {
    func placeholder(in context: Context) -> MessagesEntry {
        MessagesEntry(date: Date(), messages: [])
    }

    func getSnapshot(in context: Context, completion: @escaping (MessagesEntry) -> Void) {
        completion(entry())
    }

    func getTimeline(
        in context: Context, completion: @escaping (Timeline<MessagesEntry>) -> Void
    ) {
        completion(Timeline(entries: [entry()], policy: .never))
    }

    private func entry() -> MessagesEntry {
        let data = Garage.defaults.data(forKey: "messages") ?? Data()
        let messages = (try? JSONDecoder().decode([Message].self, from: data)) ?? []
        return MessagesEntry(date: Date(), messages: Array(messages.prefix(3)))
    }
}

struct MessagesView: View {
    var entry: MessagesEntry

    var body: some View {
        VStack {
            Text("Messages").font(.headline)
            ForEach(entry.messages) { message in Text(message.title).font(.caption) }
        }
        .containerBackground(.background, for: .widget)
    }
}
