// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import SwiftUI
import WidgetKit

@main
struct GarageBundle: WidgetBundle {
    var body: some Widget {
        DoorControl()
        DoorWidget()
        MessagesWidget()
    }
}
