// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import AppIntents
import Foundation
import LamplighterClient
import SwiftUI
import WidgetKit

// widget: the timeline is what remains when pushes are throttled
struct DoorWidget: Widget {
    var body: some WidgetConfiguration {
        let configuration = AppIntentConfiguration(
            kind: Garage.doorWidgetKind, intent: SelectDoorOfWidget.self, provider: DoorTimeline()
        ) { entry in
            DoorView(entry: entry)
        }
        .configurationDisplayName("Garage Door")
        .supportedFamilies([.systemSmall])
        .onBackgroundURLSessionEvents { session, completion in
            nonisolated(unsafe) let completion = completion
            Lamplighter.garage.handleBackgroundEvents(of: session) { completion() }
        }
        if #available(iOS 26.0, *) {
            return configuration.pushHandler(GarageWidgets.self)
        }
        return configuration
    }
}
// end

struct DoorEntry: TimelineEntry {
    var date: Date
    var door: Door?
}

struct DoorTimeline: AppIntentTimelineProvider {
    func placeholder(in context: Context) -> DoorEntry { DoorEntry(date: Date(), door: nil) }

    func snapshot(for configuration: SelectDoorOfWidget, in context: Context) async -> DoorEntry {
        await entry(configuration)
    }

    func timeline(
        for configuration: SelectDoorOfWidget, in context: Context
    ) async -> Timeline<DoorEntry> {
        // A push asks for a new timeline at once; without one, half an hour is what the budget allows.
        Timeline(
            entries: [await entry(configuration)], policy: .after(Date().addingTimeInterval(1800)))
    }

    private func entry(_ configuration: SelectDoorOfWidget) async -> DoorEntry {
        var door: Door?
        if let selected = configuration.door { door = try? await Garage.backend.door(selected.id) }
        return DoorEntry(date: Date(), door: door)
    }
}

struct DoorView: View {
    var entry: DoorEntry

    var body: some View {
        VStack {
            Text(entry.door?.name ?? "Garage").font(.headline)
            Text(entry.door.map { $0.isOpen ? "Open" : "Closed" } ?? "–")
        }
        .containerBackground(.background, for: .widget)
    }
}
