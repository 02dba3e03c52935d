// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import LamplighterClient
import SwiftUI
import WidgetKit

@main
struct GarageDoorApp: App {
    @UIApplicationDelegateAdaptor(AppDelegate.self) private var delegate

    var body: some Scene {
        WindowGroup {
            DoorList()
                // launch: what an extension could not write or send is repaired
                .task {
                    await Lamplighter.garage.synchronizeControls([GarageControls.self])
                    if #available(iOS 26.0, *) {
                        await Lamplighter.garage.synchronizeWidgets([GarageWidgets.self])
                    }
                }
            // end
        }
    }
}

struct DoorList: View {
    @State private var doors: [Door] = []
    @State private var messages: [Message] = []

    var body: some View {
        NavigationStack {
            List {
                Section("Doors") {
                    ForEach(doors) { door in
                        Button("\(door.name): \(door.isOpen ? "open" : "closed")") {
                            Task { await toggle(door) }
                        }
                    }
                }
                Section("Messages") {
                    ForEach(messages) { message in Text(message.title) }
                }
            }
            .navigationTitle("Garage")
            .refreshable { await load() }
            .task { await load() }
        }
    }

    private func load() async {
        doors = (try? await Garage.backend.doors()) ?? doors
        messages = (try? await MessageCenter.refresh()) ?? messages
    }

    private func toggle(_ door: Door) async {
        try? await Garage.backend.setDoor(door.id, isOpen: !door.isOpen)
        // On this device at once; on the others by push.
        ControlCenter.shared.reloadControls(ofKind: Garage.doorControlKind)
        WidgetCenter.shared.reloadTimelines(ofKind: Garage.doorWidgetKind)
        await load()
    }
}
