// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

// developer.apple.com/documentation/widgetkit, and the SDK's interface for what is Sendable. What Apple
// builds in Swift 5 mode without strict concurrency is so here too.
@_exported import AppIntents
@_exported import FoundationOnApple
@_exported import SwiftUI

// MARK: Controls

// …/widgetkit/controlcenter: a class that is not Sendable
public class ControlCenter {
    public static let shared: ControlCenter = { fatalError() }()
    // …/controlcenter/currentcontrols(): throws, though the article's sample has no `try`
    public func currentControls() async throws -> [ControlInfo] { fatalError() }
    public func reloadControls(ofKind kind: String) {}
    public func reloadAllControls() {}
}

// …/widgetkit/controlinfo: not Sendable
public struct ControlInfo {
    public let kind: String
    public var pushInfo: ControlPushInfo?
    // …/controlinfo/configurationintent(of:)
    public func configurationIntent<Intent>(of intentType: Intent.Type = Intent.self) -> Intent?
    where Intent: ControlConfigurationIntent { fatalError() }
}

// …/widgetkit/controlpushinfo: not Sendable
public struct ControlPushInfo {
    public let token: Data
}

// …/widgetkit/controlpushhandler, with init() from the SDK's interface
public protocol ControlPushHandler {
    init()
    func pushTokensDidChange(controls: [ControlInfo])
}

extension ControlWidgetConfiguration {
    // …/swiftui/controlwidgetconfiguration/pushhandler(_:)
    @MainActor @preconcurrency public func pushHandler(
        _ pushHandlerType: any ControlPushHandler.Type
    ) -> some ControlWidgetConfiguration { self }
    // …/swiftui/controlwidgetconfiguration/displayname(_:), description(_:), promptsforuserconfiguration()
    @MainActor @preconcurrency public func displayName(
        _ name: LocalizedStringResource
    ) -> some ControlWidgetConfiguration { self }
    @MainActor @preconcurrency public func description(
        _ description: LocalizedStringResource
    ) -> some ControlWidgetConfiguration { self }
    @MainActor @preconcurrency public func promptsForUserConfiguration()
        -> some ControlWidgetConfiguration
    { self }
}

// …/swiftui/controlwidgettemplate
@MainActor @preconcurrency public protocol ControlWidgetTemplate {}
@resultBuilder public struct ControlWidgetTemplateBuilder {
    public static func buildBlock<Content: ControlWidgetTemplate>(_ content: Content) -> Content {
        content
    }
}

// …/widgetkit/appintentcontrolvalueprovider
public protocol AppIntentControlValueProvider {
    associatedtype Configuration: ControlConfigurationIntent
    associatedtype Value
    func previewValue(configuration: Configuration) -> Value
    func currentValue(configuration: Configuration) async throws -> Value
}

// …/widgetkit/appintentcontrolconfiguration/init(kind:provider:content:)
@MainActor @preconcurrency
public struct AppIntentControlConfiguration<Configuration, Content>: ControlWidgetConfiguration
where Configuration: ControlConfigurationIntent, Content: ControlWidgetTemplate {
    @MainActor @preconcurrency public init<Provider>(
        kind: String, provider: Provider,
        @ControlWidgetTemplateBuilder content: @escaping (Provider.Value) -> Content
    ) where Configuration == Provider.Configuration, Provider: AppIntentControlValueProvider {}
}

// …/widgetkit/controlwidgettoggle/init(_:ison:action:valuelabel:), of which the one with a String
@MainActor @preconcurrency
public struct ControlWidgetToggle<ValueLabel, Action>: ControlWidgetTemplate
where ValueLabel: View {
    @MainActor @preconcurrency public init(
        _ title: some StringProtocol, isOn: Bool, action: Action,
        @ViewBuilder valueLabel: @escaping (Bool) -> ValueLabel
    ) where Action: SetValueIntent, Action.ValueType == Bool {}
}

// MARK: Widgets

// …/widgetkit/widgetcenter: a class that is not Sendable
public class WidgetCenter {
    public static let shared: WidgetCenter = { fatalError() }()
    // …/widgetcenter/currentpushinfo
    public var currentPushInfo: WidgetPushInfo? { get async { fatalError() } }
    // …/widgetcenter/currentconfigurations()
    public func currentConfigurations() async throws -> [WidgetInfo] { fatalError() }
    public func reloadTimelines(ofKind kind: String) {}
    public func reloadAllTimelines() {}
}

// …/widgetkit/widgetinfo: @preconcurrency, not Sendable
@preconcurrency public struct WidgetInfo {
    public let kind: String
    // …/widgetinfo/widgetconfigurationintent(of:)
    public func widgetConfigurationIntent<Intent>(of intentType: Intent.Type = Intent.self)
        -> Intent?
    where Intent: WidgetConfigurationIntent { fatalError() }
}

// …/widgetkit/widgetpushinfo
public struct WidgetPushInfo: Sendable {
    public let token: Data
}

// …/widgetkit/widgetpushhandler, with init() from the SDK's interface
public protocol WidgetPushHandler {
    init()
    func pushTokenDidChange(_ pushInfo: WidgetPushInfo, widgets: [WidgetInfo])
}

extension WidgetConfiguration {
    // …/swiftui/widgetconfiguration/pushhandler(_:)
    @MainActor @preconcurrency public func pushHandler(
        _ pushHandlerType: any WidgetPushHandler.Type
    ) -> some WidgetConfiguration { self }
    // …/swiftui/widgetconfiguration/configurationdisplayname(_:), supportedfamilies(_:)
    @MainActor @preconcurrency public func configurationDisplayName(
        _ displayName: LocalizedStringResource
    ) -> some WidgetConfiguration { self }
    @MainActor @preconcurrency public func supportedFamilies(
        _ families: [WidgetFamily]
    ) -> some WidgetConfiguration { self }
    // …/swiftui/widgetconfiguration/onbackgroundurlsessionevents(matching:_:)-2e152
    @MainActor @preconcurrency public func onBackgroundURLSessionEvents(
        matching matchingBlock: ((String) -> Bool)? = nil,
        _ urlSessionEvent: @escaping (String, @escaping () -> Void) -> Void
    ) -> some WidgetConfiguration { self }
}

// …/widgetkit/widgetfamily
public enum WidgetFamily: Sendable {
    case systemSmall, systemMedium
}

// …/widgetkit/timelineentry, timeline, timelinereloadpolicy
public protocol TimelineEntry {
    var date: Date { get }
}
public struct TimelineReloadPolicy: Sendable {
    public static func after(_ date: Date) -> TimelineReloadPolicy { fatalError() }
    public static let never: TimelineReloadPolicy = { fatalError() }()
}
public struct Timeline<EntryType: TimelineEntry> {
    public init(entries: [EntryType], policy: TimelineReloadPolicy) {}
}

// …/widgetkit/appintenttimelineprovider
public protocol AppIntentTimelineProvider {
    associatedtype Entry: TimelineEntry
    associatedtype Intent: WidgetConfigurationIntent
    typealias Context = TimelineProviderContext
    func placeholder(in context: Context) -> Entry
    func snapshot(for configuration: Intent, in context: Context) async -> Entry
    func timeline(for configuration: Intent, in context: Context) async -> Timeline<Entry>
}
public struct TimelineProviderContext {}

// …/widgetkit/appintentconfiguration/init(kind:intent:provider:content:)
@MainActor @preconcurrency
public struct AppIntentConfiguration<Intent, Content>: WidgetConfiguration
where Intent: WidgetConfigurationIntent, Content: View {
    @MainActor @preconcurrency public init<Provider>(
        kind: String, intent: Intent.Type = Intent.self, provider: Provider,
        @ViewBuilder content: @escaping (Provider.Entry) -> Content
    ) where Intent == Provider.Intent, Provider: AppIntentTimelineProvider {}
}

// …/widgetkit/timelineprovider
public protocol TimelineProvider {
    associatedtype Entry: TimelineEntry
    typealias Context = TimelineProviderContext
    func placeholder(in context: Context) -> Entry
    @preconcurrency func getSnapshot(
        in context: Context, completion: @escaping @Sendable (Entry) -> Void)
    @preconcurrency func getTimeline(
        in context: Context, completion: @escaping @Sendable (Timeline<Entry>) -> Void)
}

// …/widgetkit/staticconfiguration/init(kind:provider:content:)
@MainActor @preconcurrency
public struct StaticConfiguration<Content>: WidgetConfiguration where Content: View {
    @MainActor @preconcurrency public init<Provider>(
        kind: String, provider: Provider,
        @ViewBuilder content: @escaping (Provider.Entry) -> Content
    ) where Provider: TimelineProvider {}
}
