// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import SwiftSyntax

/// What a rule asks about a piece of syntax.
extension SyntaxProtocol {
    var oneLine: String { trimmedDescription.oneLine }

    /// Effects and ownership bind a text to its place.
    var mayBeWrapped: Bool {
        !tokens(viewMode: .sourceAccurate).contains {
            [.keyword(.try), .keyword(.await), .keyword(.consume), .keyword(.copy)]
                .contains($0.tokenKind)
        }
    }

    private var ancestors: UnfoldFirstSequence<Syntax> {
        sequence(first: Syntax(self)) { $0.parent }
    }

    /// The outermost function, initializer or property below a type that holds it.
    var declaration: Syntax? {
        ancestors.first { $0.parent?.is(MemberBlockItemSyntax.self) ?? false }
            ?? ancestors.first { $0.parent?.is(SourceFileSyntax.self) ?? false }
    }

    /// The names of the declarations around it.
    var declarationPath: String {
        ancestors.compactMap { node in
            switch node.as(SyntaxEnum.self) {
            case .structDecl(let type): type.name.text
            case .enumDecl(let type): type.name.text
            case .classDecl(let type): type.name.text
            case .extensionDecl(let type): type.extendedType.oneLine
            case .functionDecl(let function): function.name.text
            case .initializerDecl: "init"
            case .variableDecl(let variable): variable.bindings.first?.pattern.oneLine
            default: nil
            }
        }.reversed().joined(separator: ".")
    }

    /// The declaration whose body runs it, closures aside.
    var function: Syntax? {
        ancestors.first { node in
            switch node.as(SyntaxEnum.self) {
            case .functionDecl, .initializerDecl, .accessorDecl, .subscriptDecl: true
            case .variableDecl: node.parent?.is(MemberBlockItemSyntax.self) ?? false
            default: false
            }
        }
    }
}

extension String {
    /// Without line breaks and indentation.
    var oneLine: String { split(whereSeparator: \.isWhitespace).joined(separator: " ") }
}

extension AttributeListSyntax {
    /// What other modules compile into themselves cannot name a function of this one.
    var areInlinable: Bool {
        contains { attribute in
            let name = attribute.as(AttributeSyntax.self)?.attributeName.oneLine
            return ["inlinable", "_transparent", "_alwaysEmitIntoClient"].contains(name)
        }
    }
}

extension FunctionCallExprSyntax {
    var calledName: TokenSyntax? {
        calledExpression.as(DeclReferenceExprSyntax.self)?.baseName
            ?? calledExpression.as(MemberAccessExprSyntax.self)?.declName.baseName
    }

    var calledBase: ExprSyntax? { calledExpression.as(MemberAccessExprSyntax.self)?.base }

    /// Assertions and log lines: no test looks at them.
    var isAboutMistakes: Bool {
        guard let name = calledName?.text else { return false }
        guard let base = calledBase else {
            return [
                "precondition", "preconditionFailure", "assert", "assertionFailure", "fatalError",
                "checkInvariants",
            ].contains(name)
        }
        let last = base.oneLine.split(separator: ".").last ?? ""
        return last.hasSuffix("logger") || last.hasSuffix("logger?") || name == "checkInvariants"
    }

    /// Dropping it changes speed and memory, and nothing that is computed.
    var isAboutMemory: Bool {
        ["reserveCapacity", "prefetch", "deallocate", "deinitialize"].contains(calledName?.text)
    }

    var initializesSelf: Bool { calledName?.tokenKind == .keyword(.`init`) && calledBase != nil }
}

extension ExprSyntax {
    /// A call or an assignment, also one that throws or waits.
    var mayBeDropped: Bool {
        if let marked = `as`(TryExprSyntax.self) { return marked.expression.mayBeDropped }
        if let marked = `as`(AwaitExprSyntax.self) { return marked.expression.mayBeDropped }
        guard tokens(viewMode: .sourceAccurate).allSatisfy({ $0.tokenKind != .keyword(.consume) })
        else { return false }
        if let call = `as`(FunctionCallExprSyntax.self) {
            return !call.isAboutMistakes && !call.isAboutMemory && !call.initializesSelf
        }
        guard let target = assigned else { return false }
        if target.is(DiscardAssignmentExprSyntax.self) {
            return `as`(InfixOperatorExprSyntax.self)?.rightOperand.mayBeDropped ?? false
        }
        return function?.is(InitializerDeclSyntax.self) != true
            && !target.is(TupleExprSyntax.self) && target.oneLine != "self"
    }

    /// What an assignment assigns to; nil of anything else.
    var assigned: ExprSyntax? {
        guard let infix = `as`(InfixOperatorExprSyntax.self) else { return nil }
        if infix.operator.is(AssignmentExprSyntax.self) { return infix.leftOperand }
        let sign = infix.operator.as(BinaryOperatorExprSyntax.self)?.operator.text ?? ""
        let compares = ["==", "!=", "<=", ">=", "===", "!==", "~="].contains(sign)
        return sign.hasSuffix("=") && !compares ? infix.leftOperand : nil
    }
}

extension CodeBlockItemSyntax {
    /// Whether it is the value of the closure, function or branch that it is alone in.
    var isValue: Bool {
        guard let list = parent?.as(CodeBlockItemListSyntax.self), list.count == 1,
            let block = list.parent
        else { return false }
        if block.is(ClosureExprSyntax.self) || block.is(AccessorBlockSyntax.self) { return true }
        guard let owner = block.is(CodeBlockSyntax.self) ? block.parent : block
        else { return false }
        switch owner.as(SyntaxEnum.self) {
        case .functionDecl(let function): return function.signature.returnClause != nil
        case .accessorDecl(let accessor): return accessor.accessorSpecifier.text == "get"
        case .ifExpr: return owner.isValueOfBranch
        case .switchCase: return owner.parent?.parent?.isValueOfBranch ?? false
        default: return false
        }
    }

    /// Whether it is the last in the body of a guard, which it leaves if it returns never.
    var endsGuard: Bool {
        guard let list = parent?.as(CodeBlockItemListSyntax.self), list.last == self else {
            return false
        }
        return list.parent?.parent?.is(GuardStmtSyntax.self) ?? false
    }

    /// Whether it gives a variable of the same function its first value.
    func initializesVariable(with expression: ExprSyntax) -> Bool {
        guard let name = expression.assigned?.as(DeclReferenceExprSyntax.self)?.oneLine,
            let function
        else { return false }
        let search = UninitializedVariables(viewMode: .sourceAccurate)
        search.walk(function)
        return search.names.contains(name)
    }
}

extension Syntax {
    /// Whether an `if` or `switch` is an expression whose branches have values.
    fileprivate var isValueOfBranch: Bool {
        guard let parent else { return false }
        if parent.is(IfExprSyntax.self) { return parent.isValueOfBranch }
        guard parent.is(ExpressionStmtSyntax.self) else { return true }
        return parent.parent?.as(CodeBlockItemSyntax.self)?.isValue ?? true
    }
}

/// The names of variables that are declared without a value.
private final class UninitializedVariables: SyntaxVisitor {
    private(set) var names: Set<String> = []

    override func visit(_ node: PatternBindingSyntax) -> SyntaxVisitorContinueKind {
        if node.initializer == nil, node.accessorBlock == nil { names.insert(node.pattern.oneLine) }
        return .visitChildren
    }
}
