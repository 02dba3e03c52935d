// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import SwiftOperators
import SwiftSyntax

/// Finds the mutants of a file. README.md has the rules.
final class MutantFinder: SyntaxVisitor {
    private let file: String
    private let tree: Syntax
    private let locations: SourceLocationConverter
    /// How often a declaration has had the same mutant so far.
    private var occurrences: [String: Int] = [:]
    private(set) var mutants: [Mutant] = []

    init(file: String, _ source: SourceFileSyntax) {
        self.file = file
        // An operator that is unknown leaves its expression unfolded, without mutants of its own.
        tree = OperatorTable.standardOperators.foldAll(source) { _ in }
        locations = SourceLocationConverter(fileName: file, tree: tree)
        super.init(viewMode: .sourceAccurate)
        walk(tree)
    }

    // MARK: What is left alone

    override func visit(_ node: FunctionDeclSyntax) -> SyntaxVisitorContinueKind {
        let isAboutInvariants = node.name.text.hasPrefix("checkInvariants")
        return node.attributes.areInlinable || isAboutInvariants ? .skipChildren : .visitChildren
    }

    override func visit(_ node: InitializerDeclSyntax) -> SyntaxVisitorContinueKind {
        node.attributes.areInlinable ? .skipChildren : .visitChildren
    }

    override func visit(_ node: VariableDeclSyntax) -> SyntaxVisitorContinueKind {
        node.attributes.areInlinable ? .skipChildren : .visitChildren
    }

    override func visit(_ node: SubscriptDeclSyntax) -> SyntaxVisitorContinueKind {
        node.attributes.areInlinable ? .skipChildren : .visitChildren
    }

    override func visit(_ node: AccessorDeclSyntax) -> SyntaxVisitorContinueKind {
        node.attributes.areInlinable ? .skipChildren : .visitChildren
    }

    override func visit(_: DeinitializerDeclSyntax) -> SyntaxVisitorContinueKind { .skipChildren }
    override func visit(_: IfConfigDeclSyntax) -> SyntaxVisitorContinueKind { .skipChildren }
    override func visit(_: AttributeSyntax) -> SyntaxVisitorContinueKind { .skipChildren }
    // A default argument may name only what its callers see.
    override func visit(_: FunctionParameterSyntax) -> SyntaxVisitorContinueKind { .skipChildren }

    // MARK: Conditions

    override func visit(_ node: ConditionElementSyntax) -> SyntaxVisitorContinueKind {
        if case .expression(let condition) = node.condition { negate(condition) }
        return .visitChildren
    }

    override func visit(_ node: TernaryExprSyntax) -> SyntaxVisitorContinueKind {
        negate(node.condition)
        return .visitChildren
    }

    private func negate(_ condition: ExprSyntax) {
        guard !condition.is(BooleanLiteralExprSyntax.self), condition.mayBeWrapped else { return }
        add(.negate, Syntax(condition), becomes: "!(\(condition.oneLine))", .negated)
    }

    // MARK: Bounds

    private static let neighbours = ["<": "<=", "<=": "<", ">": ">=", ">=": ">"]

    override func visit(_ node: InfixOperatorExprSyntax) -> SyntaxVisitorContinueKind {
        guard let sign = node.operator.as(BinaryOperatorExprSyntax.self)?.operator,
            let neighbour = Self.neighbours[sign.text], node.mayBeWrapped,
            // A sort predicate: what is equal may come in either order.
            !(node.leftOperand.oneLine.hasPrefix("$") && node.rightOperand.oneLine.hasPrefix("$"))
        else { return .visitChildren }
        replace(.bound, Syntax(node), sign, by: neighbour)
        return .visitChildren
    }

    // MARK: Extremes

    private static let extremes = ["min": "max", "max": "min"]

    override func visit(_ node: FunctionCallExprSyntax) -> SyntaxVisitorContinueKind {
        if node.isAboutMistakes { return .skipChildren }
        guard let name = node.calledName, let other = Self.extremes[name.text], node.mayBeWrapped
        else { return .visitChildren }
        let isFree = node.calledBase.map { $0.oneLine == "Swift" } ?? true
        let label = node.arguments.first?.label?.text
        let isExtreme =
            isFree
            ? node.arguments.count >= 2 && label == nil
            : node.arguments.isEmpty || label == "by"
        if isExtreme { replace(.extreme, Syntax(node), name, by: other) }
        return .visitChildren
    }

    // MARK: Statements

    override func visit(_ node: CodeBlockItemSyntax) -> SyntaxVisitorContinueKind {
        guard case .expr(let expression) = node.item, expression.mayBeDropped,
            !node.isValue, !node.endsGuard, !node.initializesVariable(with: expression)
        else { return .visitChildren }
        add(.drop, Syntax(expression), becomes: "", .dropped)
        return .visitChildren
    }

    // MARK: Recording

    private func replace(
        _ kind: Mutant.Operator, _ node: Syntax, _ token: TokenSyntax, by replacement: String
    ) {
        // It is written twice, once on one line, which not every text can be.
        let text = node.trimmedDescription
        if text.contains("\n"), ["//", "\"\"\"", "{"].contains(where: text.contains) { return }
        let start = token.positionAfterSkippingLeadingTrivia.utf8Offset
        let end = (token.positionAfterSkippingLeadingTrivia + token.trimmedLength).utf8Offset
        let first = node.positionAfterSkippingLeadingTrivia.utf8Offset
        var bytes = Array(text.utf8)
        bytes.replaceSubrange(start - first..<end - first, with: replacement.utf8)
        add(
            kind, node, becomes: String(decoding: bytes, as: UTF8.self).oneLine,
            .replaced(start: start, end: end, by: replacement))
    }

    private func add(
        _ kind: Mutant.Operator, _ node: Syntax, becomes after: String, _ form: Edit.Form
    ) {
        let before = node.oneLine
        let declaration = node.declaration
        var key = "\(file)\n\(node.declarationPath)\n\(kind.rawValue)\n\(before)"
        occurrences[key, default: 0] += 1
        key += "\n\(occurrences[key]!)"
        let start = node.startLocation(converter: locations)
        let position = node.positionAfterSkippingLeadingTrivia
        let scope = declaration ?? node
        mutants.append(
            Mutant(
                id: 0, operator: kind, line: start.line, column: start.column,
                lastLine: node.endLocation(converter: locations).line,
                scope: ClosedLines(
                    first: scope.startLocation(converter: locations).line,
                    last: scope.endLocation(converter: locations).line),
                before: before, after: after,
                edit: Edit(
                    start: position.utf8Offset,
                    end: (position + node.trimmedLength).utf8Offset, form: form),
                key: key))
    }
}
