// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// A pretended iPhone with one app: what it would report to its push handlers, and how it registers
/// that. It decides; nothing here waits or sends.
package struct Device: Sendable {
    package struct Control: Hashable, Sendable {
        package var kind: String
        package var subject: String
        /// nil for a control that the system has given no token yet.
        package var token: String?
    }

    /// A request to the registrar, below the installation's path.
    package struct Request: Sendable {
        package var method: String
        package var path: String
        /// The members of the body but the sequence; nil for none.
        package var members: [(String, JSONText)]?
        /// The installation that it is about; nil for the device's present one.
        package var installation: String?
    }

    /// What happens to the device.
    package enum Change: CaseIterable, Sendable {
        case launch, addControl, removeControl, changeSubject, newToken, newDeviceToken, reinstall
        /// The user signs out, and what follows belongs to another installation.
        case forget
    }

    package let number: Int
    package private(set) var installation = ""
    package private(set) var controls: [Control] = []
    package private(set) var widgetToken = ""
    package private(set) var deviceToken = ""
    /// Tokens that the device has had, and does not show anything with any more.
    package private(set) var formerTokens: [String] = []
    /// The count of snapshots. It begins with the time, so that it goes on after a reinstallation.
    package var sequence: Int64
    private let subjects: Int
    private var generation = 0

    package static let controlsMax = 6
    package static let handler = "GarageControls"
    package static let widgetHandler = "DoorWidgets"

    /// - Parameter subjects: how many subjects there are: `door-0` and so on.
    package init(
        number: Int, subjects: Int, startingAt time: WallTime,
        using random: inout some RandomNumberGenerator
    ) {
        precondition(subjects > 0, "a device shows at least one subject")
        self.number = number
        self.subjects = subjects
        sequence = time.milliseconds
        install(using: &random)
    }

    private mutating func install(using random: inout some RandomNumberGenerator) {
        generation += 1
        installation = "device-\(number)-\(generation)"
        widgetToken = Self.token(using: &random)
        deviceToken = Self.token(using: &random)
        controls = [control(using: &random)]
    }

    /// The requests that a change leads to, in their order.
    package mutating func requests(
        for change: Change, using random: inout some RandomNumberGenerator
    ) -> [Request] {
        switch change {
        case .launch: return [completeSet, widgets, deviceRequest]
        case .addControl:
            guard controls.count < Self.controlsMax else { return [] }
            controls.append(control(using: &random))
        case .removeControl:
            guard let index = controls.indices.randomElement(using: &random) else { return [] }
            let gone = controls.remove(at: index)
            formerTokens += [gone.token].compactMap(\.self)
        case .changeSubject:
            guard let index = controls.indices.randomElement(using: &random) else { return [] }
            controls[index].subject = subject(using: &random)
        case .newToken:
            guard let index = controls.indices.randomElement(using: &random) else { return [] }
            formerTokens += [controls[index].token].compactMap(\.self)
            controls[index].token = Self.token(using: &random)
        case .newDeviceToken:
            formerTokens.append(deviceToken)
            deviceToken = Self.token(using: &random)
            return [deviceRequest]
        case .reinstall:
            // Nothing tells the registrar of the installation that is gone: its tokens die at Apple's.
            formerTokens += controls.compactMap(\.token) + [widgetToken, deviceToken]
            install(using: &random)
            return [completeSet, widgets, deviceRequest]
        case .forget:
            let removal = Request(method: "DELETE", path: "", installation: installation)
            formerTokens += controls.compactMap(\.token) + [widgetToken, deviceToken]
            install(using: &random)
            return [removal, completeSet, widgets, deviceRequest]
        }
        return [controlsRequest]
    }

    /// The tokens and subjects that the installation should be registered with, by handler.
    package var registered: [String: Set<String>] {
        [
            Self.handler: Set(controls.map { "\($0.token ?? "-") \($0.subject)" }),
            Self.widgetHandler: ["\(widgetToken) \(widgetSubject)"],
            "default": ["\(deviceToken) \(widgetSubject)"],
        ]
    }

    package var tokens: [String] { controls.compactMap(\.token) + [widgetToken, deviceToken] }

    // MARK: Requests

    private var completeSet: Request {
        Request(
            method: "PUT", path: "/controls",
            members: [("handlers", .object([(Self.handler, .array(controls.map(Self.target)))]))])
    }

    private var controlsRequest: Request {
        Request(
            method: "PUT", path: "/controls/\(Self.handler)",
            members: [("targets", .array(controls.map(Self.target)))])
    }

    private var widgets: Request {
        let target = Self.target(widgetToken, "com.example.doors", widgetSubject)
        return Request(
            method: "PUT", path: "/widgets/\(Self.widgetHandler)",
            members: [("targets", .array([.object(target)]))])
    }

    private var deviceRequest: Request {
        let target = Self.target(deviceToken, nil, widgetSubject) + [("onChange", "background")]
        return Request(
            method: "PUT", path: "/device", members: [("targets", .array([.object(target)]))])
    }

    private var widgetSubject: String { "door-\(number % subjects)" }

    private static func target(_ control: Control) -> JSONText {
        .object(target(control.token, control.kind, control.subject))
    }

    private static func target(
        _ token: String?, _ kind: String?, _ subject: String
    ) -> [(String, JSONText)] {
        var show: [(String, JSONText)] = []
        if let kind { show.append(("kind", .string(kind))) }
        show.append(("subjects", .array([.string(subject)])))
        var members: [(String, JSONText)] = []
        if let token { members.append(("token", .string(token))) }
        members.append(("shows", .array([.object(show)])))
        return members
    }

    // MARK: Chance

    private func control(using random: inout some RandomNumberGenerator) -> Control {
        // Now and then the system has no token for a control yet.
        let token = UInt8.random(in: 0..<20, using: &random) == 0 ? nil : Self.token(using: &random)
        return Control(
            kind: "com.example.garageDoor", subject: subject(using: &random), token: token)
    }

    private func subject(using random: inout some RandomNumberGenerator) -> String {
        "door-\(Int.random(in: 0..<subjects, using: &random))"
    }

    private static func token(using random: inout some RandomNumberGenerator) -> String {
        (0..<4).map { _ in
            let digits = String(random.next() as UInt64, radix: 16)
            return String(repeating: "0", count: 16 - digits.count) + digits
        }.joined()
    }
}
