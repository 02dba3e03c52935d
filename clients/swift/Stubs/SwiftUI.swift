// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

// developer.apple.com/documentation/swiftui: a few views and modifiers, far fewer overloads than Apple's.
@_exported import FoundationOnApple

@MainActor @preconcurrency public protocol View {
    associatedtype Body: View
    @ViewBuilder var body: Body { get }
}

extension Never: View {
    public var body: Never { fatalError() }
}

@resultBuilder public struct ViewBuilder {
    public static func buildBlock<each Content: View>(_ content: repeat each Content) -> TupleView {
        fatalError()
    }
    public static func buildBlock<Content: View>(_ content: Content) -> Content { content }
    public static func buildExpression<Content: View>(_ content: Content) -> Content { content }
    public static func buildIf<Content: View>(_ content: Content?) -> TupleView { fatalError() }
    public static func buildEither<A: View>(first: A) -> TupleView { fatalError() }
    public static func buildEither<A: View>(second: A) -> TupleView { fatalError() }
}

public struct TupleView: View {
    public var body: Never { fatalError() }
}

public struct Text: View {
    public init(_ content: String) {}
    public var body: Never { fatalError() }
}

public struct Label: View {
    public init(_ title: String, systemImage: String) {}
    public var body: Never { fatalError() }
}

public struct VStack<Content: View>: View {
    public init(@ViewBuilder content: () -> Content) {}
    public var body: Never { fatalError() }
}

public struct List<Content: View>: View {
    public init(@ViewBuilder content: () -> Content) {}
    public var body: Never { fatalError() }
}

public struct Section<Content: View>: View {
    public init(_ title: String, @ViewBuilder content: () -> Content) {}
    public var body: Never { fatalError() }
}

public struct ForEach<Data: RandomAccessCollection, Content: View>: View {
    public init(_ data: Data, @ViewBuilder content: @escaping (Data.Element) -> Content)
    where Data.Element: Identifiable {}
    public var body: Never { fatalError() }
}

public struct Button<Label: View>: View {
    public init(_ title: String, action: @escaping @MainActor () -> Void) where Label == Text {}
    public var body: Never { fatalError() }
}

public struct NavigationStack<Root: View>: View {
    public init(@ViewBuilder root: () -> Root) {}
    public var body: Never { fatalError() }
}

extension View {
    // …/swiftui/view/task(priority:_:)
    public func task(_ action: @escaping @MainActor @Sendable () async -> Void) -> some View {
        self
    }
    // …/swiftui/view/refreshable(action:)
    public func refreshable(action: @escaping @MainActor @Sendable () async -> Void) -> some View {
        self
    }
    // …/swiftui/view/navigationtitle(_:)
    public func navigationTitle(_ title: String) -> some View { self }
    // …/swiftui/view/font(_:)
    public func font(_ font: Font?) -> some View { self }
}

public struct Font: Sendable {
    public static var headline: Font { fatalError() }
    public static var caption: Font { fatalError() }
}

@propertyWrapper public struct State<Value> {
    public init(wrappedValue: Value) {}
    public var wrappedValue: Value {
        get { fatalError() }
        nonmutating set {}
    }
}

// …/swiftui/app, …/swiftui/scene
@MainActor @preconcurrency public protocol Scene {}
@MainActor @preconcurrency public protocol App {
    associatedtype Body: Scene
    @SceneBuilder var body: Body { get }
    init()
}
extension App {
    public static func main() {}
}
@resultBuilder public struct SceneBuilder {
    public static func buildBlock<Content: Scene>(_ content: Content) -> Content { content }
}
public struct WindowGroup<Content: View>: Scene {
    public init(@ViewBuilder content: @escaping () -> Content) {}
}

#if canImport(UIKit)
    @_exported import UIKit

    // …/swiftui/uiapplicationdelegateadaptor
    @MainActor @preconcurrency @propertyWrapper
    public struct UIApplicationDelegateAdaptor<DelegateType: NSObject & UIApplicationDelegate> {
        public var wrappedValue: DelegateType { fatalError() }
        public init(_ delegateType: DelegateType.Type = DelegateType.self) {}
    }
#endif

// …/swiftui/containerbackgroundplacement
public struct ContainerBackgroundPlacement: Sendable {
    // …/widgetkit: the background of a widget
    public static var widget: ContainerBackgroundPlacement { fatalError() }
}
public protocol ShapeStyle {}
public struct BackgroundStyle: ShapeStyle {}
extension ShapeStyle where Self == BackgroundStyle {
    public static var background: BackgroundStyle { fatalError() }
}
extension View {
    // …/swiftui/view/containerbackground(_:for:)
    public func containerBackground<S: ShapeStyle>(
        _ style: S, for container: ContainerBackgroundPlacement
    ) -> some View { self }
}

// …/swiftui/widget, …/swiftui/widgetconfiguration, …/swiftui/widgetbundle
@MainActor @preconcurrency public protocol Widget {
    associatedtype Body: WidgetConfiguration
    init()
    var body: Body { get }
}
@MainActor @preconcurrency public protocol WidgetConfiguration {}
@MainActor @preconcurrency public protocol WidgetBundle {
    associatedtype Body: Widget
    init()
    @WidgetBundleBuilder var body: Body { get }
}
extension WidgetBundle {
    public static func main() {}
}
@resultBuilder public struct WidgetBundleBuilder {
    public static func buildExpression<Content: Widget>(_ content: Content) -> WidgetPlaceholder {
        fatalError()
    }
    // A bundle takes controls as well as widgets, though a control is no Widget.
    public static func buildExpression<Content: ControlWidget>(_ content: Content)
        -> WidgetPlaceholder
    { fatalError() }
    public static func buildBlock(_ content: WidgetPlaceholder...) -> WidgetPlaceholder {
        fatalError()
    }
}
public struct WidgetPlaceholder: Widget {
    public init() {}
    public var body: some WidgetConfiguration { EmptyWidgetConfiguration() }
}
public struct EmptyWidgetConfiguration: WidgetConfiguration {}

// …/swiftui/controlwidget, …/swiftui/controlwidgetconfiguration
@MainActor @preconcurrency public protocol ControlWidget {
    associatedtype Body: ControlWidgetConfiguration
    init()
    var body: Body { get }
}
@MainActor @preconcurrency public protocol ControlWidgetConfiguration {}
