"""Small wrong changes to a module: what a slip of the hand would make of its syntax tree."""

from __future__ import annotations

import ast
import collections
import copy
import re
from collections.abc import Callable, Iterator
from typing import Any

import attrs

_OTHER_COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_OTHER_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
    ast.Pow: ast.Mult,
}
_OTHER_METHODS = {
    "endswith": "startswith",
    "find": "rfind",
    "lower": "upper",
    "lstrip": "rstrip",
    "partition": "rpartition",
    "rfind": "find",
    "rpartition": "partition",
    "rstrip": "lstrip",
    "startswith": "endswith",
    "strip": "lstrip",
    "upper": "lower",
}
# What these get first is a name for type checkers or logs.
_WITH_A_NAME = {"TypeVar", "cast", "getLogger"}
_PROSE = re.compile(r"[A-Za-z,.:;)'] +[A-Za-z('{]|^ [a-z]|[a-z,:;] $")

Change = Callable[[], None]


@attrs.frozen
class Mutation:
    """One change.

    Args:
        line: First line of the statement that is changed, or of the head of a block.
        last_line: Its last line.
        at_import: Whether what is changed runs when the module is imported.
        inside: Name of the class or function around, for people.
        text: The code before and after, cut; with a number if it comes again in there.
        apply: Makes the change in the tree it was found in.
    """

    line: int
    last_line: int
    at_import: bool
    inside: str
    text: str
    apply: Change = attrs.field(eq=False, repr=False)


def mutations(tree: ast.Module) -> list[Mutation]:
    """Return what could be changed, in the order of the source."""
    finder = _Finder()
    finder.visit(tree)
    return finder.found


def _shown(node: ast.AST | None) -> str:
    text = "(nothing)" if node is None else " ".join(ast.unparse(node).split())
    return text if len(text) <= 70 else f"{text[:40]} ... {text[-25:]}"


def _replaced(old: ast.AST, new: ast.AST) -> ast.AST:
    return ast.fix_missing_locations(ast.copy_location(new, old))


class _Finder(ast.NodeVisitor):
    """Walk a module and note each change with the place of the node in its parent."""

    def __init__(self) -> None:
        self.found: list[Mutation] = []
        self._names: list[str] = []
        self._depth = 0
        self._lines = (1, 1)
        self._texts: collections.Counter[tuple[str, str]] = collections.Counter()
        self._in_raise = False

    # ---- notes -----------------------------------------------------------------------------

    def _note(self, before: str, after: str, apply: Change) -> None:
        inside = ".".join(self._names)
        text = f"{before} -> {after}"
        self._texts[inside, text] += 1
        number = self._texts[inside, text]
        self.found.append(
            Mutation(
                *self._lines,
                self._depth == 0,
                inside or "(module)",
                text if number == 1 else f"{text} #{number}",
                apply,
            )
        )

    def _offer(self, parent: ast.AST, field: str, index: int | None, new: ast.AST) -> None:
        """Note that the child of a node becomes another one."""
        holder = getattr(parent, field)
        old = holder if index is None else holder[index]
        _replaced(old, new)

        def apply() -> None:
            if index is None:
                setattr(parent, field, new)
            else:
                getattr(parent, field)[index] = new

        self._note(_shown(old), _shown(new), apply)

    # ---- the walk --------------------------------------------------------------------------

    def generic_visit(self, node: ast.AST) -> None:
        for field, value in ast.iter_fields(node):
            if field in {"annotation", "returns", "decorator_list", "type_comment"}:
                continue
            if isinstance(value, list):
                for index, child in enumerate(value):
                    if isinstance(child, ast.AST):
                        self._look(node, field, index, child)
            elif isinstance(value, ast.AST):
                self._look(node, field, None, value)

    def _look(self, parent: ast.AST, field: str, index: int | None, child: ast.AST) -> None:
        if isinstance(child, ast.stmt):
            self._statement(parent, field, index or 0, child)
            return
        for new in _others_of(child, parent, field):
            if not (self._in_raise and _is_message(child)):
                self._offer(parent, field, index, new)
        if not isinstance(child, ast.JoinedStr) or not self._in_raise:
            self.visit(child)

    def _statement(self, parent: ast.AST, field: str, index: int, child: ast.stmt) -> None:
        if _is_left_alone(child):
            return
        outer = self._lines
        self._lines = (child.lineno, _last_line_of_head(child))
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            self._definition(child)
        else:
            for new in _other_statements(child):
                self._offer(parent, field, index, new)
            was, self._in_raise = self._in_raise, isinstance(child, ast.Raise)
            self.visit(child)
            self._in_raise = was
        self._lines = outer

    def _definition(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        self._names.append(node.name)
        # Defaults and keywords of a class are made where it is defined, not where it runs.
        if isinstance(node, ast.ClassDef):
            for index, keyword in enumerate(node.keywords):
                self._look(node, "keywords", index, keyword)
        else:
            self.visit(node.args)
            self._depth += 1
        for index, child in enumerate(node.body):
            self._statement(node, "body", index, child)
        if not isinstance(node, ast.ClassDef):
            self._depth -= 1
        self._names.pop()

    def visit_Call(self, node: ast.Call) -> None:
        if _shown(node.func).rpartition(".")[2] in _WITH_A_NAME:
            for index in range(1, len(node.args)):
                self._look(node, "args", index, node.args[index])
            return
        for index, keyword in enumerate(node.keywords):
            if keyword.arg is not None:
                self._without_keyword(node, index, keyword)
        self.generic_visit(node)

    def _without_keyword(self, node: ast.Call, index: int, keyword: ast.keyword) -> None:
        name = _shown(node.func)

        def apply() -> None:
            del node.keywords[index]

        self._note(f"{name}({_shown(keyword)})", f"{name}()", apply)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if not (len(node.body) == 1 and isinstance(node.body[0], ast.Raise)):

            def apply() -> None:
                node.body = [_replaced(node.body[0], ast.Raise())]  # type: ignore[list-item]

            self._note(f"except {_shown(node.type)}: ...", "raise", apply)
        for index, child in enumerate(node.body):
            self._statement(node, "body", index, child)


def _last_line_of_head(node: ast.stmt) -> int:
    body = getattr(node, "body", None)
    if isinstance(body, list) and body:
        return max(node.lineno, body[0].lineno - 1)
    return node.end_lineno or node.lineno


def _is_left_alone(node: ast.stmt) -> bool:
    """Tell what has no effect of its own: imports, docstrings, logging, what is for types."""
    if isinstance(node, (ast.Import, ast.ImportFrom, ast.Assert, ast.Pass)):
        return True
    if isinstance(node, ast.Expr):
        value = node.value
        if isinstance(value, ast.Constant):
            return True
        return isinstance(value, ast.Call) and _shown(value.func).startswith("_log.")
    if isinstance(node, ast.If):
        return "TYPE_CHECKING" in _shown(node.test)
    if isinstance(node, ast.AnnAssign):
        return node.value is None or "TypeAlias" in _shown(node.annotation)
    if isinstance(node, ast.Assign):
        return _shown(node.targets[0]) in {"__all__", "__slots__"}
    return False


def _is_message(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes))
    )


# ---- what else an expression could be ----------------------------------------------------------


def _others_of(node: ast.AST, parent: ast.AST, field: str) -> Iterator[ast.AST]:
    if field in {"test", "ifs"} and not isinstance(parent, ast.Assert):
        yield from _other_tests(node, parent)
    if isinstance(node, ast.Compare):
        yield from _other_comparisons(node, is_test=field in {"test", "ifs"})
    elif isinstance(node, ast.BoolOp):
        for index in range(len(node.values)):
            rest = [value for at, value in enumerate(node.values) if at != index]
            yield rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.USub)):
        yield node.operand
    elif isinstance(node, ast.BinOp) and type(node.op) in _OTHER_OPERATORS:
        if not (isinstance(parent, ast.Call) and field == "func"):
            yield ast.BinOp(node.left, _OTHER_OPERATORS[type(node.op)](), node.right)
    elif isinstance(node, ast.IfExp):
        yield node.body
        yield node.orelse
    elif isinstance(node, ast.Attribute) and node.attr in _OTHER_METHODS and field == "func":
        yield ast.Attribute(node.value, _OTHER_METHODS[node.attr], node.ctx)
    elif isinstance(node, ast.Lambda):
        if not (isinstance(node.body, ast.Constant) and node.body.value is None):
            yield ast.Lambda(node.args, ast.Constant(None))
    elif isinstance(node, ast.Constant):
        yield from _other_constants(node, parent)


def _other_tests(node: ast.AST, parent: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Constant) or isinstance(parent, ast.IfExp):
        return  # of a choice between two values both are offered
    yield ast.Constant(False)
    if not isinstance(parent, ast.While):
        yield ast.Constant(True)


def _other_comparisons(node: ast.Compare, *, is_test: bool) -> Iterator[ast.AST]:
    for index, operator in enumerate(node.ops):
        others = _OTHER_COMPARISONS[type(operator)]
        # The opposite of a whole condition is as easily found as the condition left out.
        for other in others[:-1] if is_test and len(node.ops) == 1 else others:
            operators = list(node.ops)
            operators[index] = other()
            yield ast.Compare(node.left, operators, node.comparators)


def _other_constants(node: ast.Constant, parent: ast.AST) -> Iterator[ast.AST]:
    value: Any = node.value
    if isinstance(value, bool):
        yield ast.Constant(not value)
    elif isinstance(value, (int, float)):
        yield ast.Constant(value + 1)
    elif isinstance(value, bytes):
        yield ast.Constant(b"XX" + value + b"XX" if value else b"XX")
    elif isinstance(value, str) and not isinstance(parent, ast.JoinedStr):
        if not _PROSE.search(value):
            yield ast.Constant(f"XX{value}XX" if value else "XX")
    elif isinstance(value, str) and not _PROSE.search(value):
        yield ast.Constant(f"XX{value}XX")


# ---- what else a statement could be ------------------------------------------------------------


def _other_statements(node: ast.stmt) -> Iterator[ast.stmt]:
    if isinstance(node, ast.Return):
        is_none = isinstance(node.value, ast.Constant) and node.value.value is None
        if node.value is not None and not is_none:
            yield ast.Return(ast.Constant(None))
    elif isinstance(node, (ast.Raise, ast.Delete)) or _is_kept_elsewhere(node):
        yield ast.Pass()
    elif isinstance(node, ast.AugAssign) and type(node.op) in _OTHER_OPERATORS:
        changed = copy.copy(node)
        changed.op = _OTHER_OPERATORS[type(node.op)]()
        yield changed
    elif isinstance(node, ast.Continue):
        yield ast.Break()
    elif isinstance(node, ast.Break):
        yield ast.Continue()


def _is_kept_elsewhere(node: ast.stmt) -> bool:
    """Tell whether a statement only changes something: a call, or a member that is set."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, (ast.Call, ast.Yield, ast.YieldFrom))
    return isinstance(node, ast.Assign) and isinstance(
        node.targets[0], (ast.Attribute, ast.Subscript)
    )
