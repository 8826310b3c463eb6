"""A fine-tuning script as a syntax tree with positions: read, never run; mended by edits at positions."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import metadata
from pathlib import Path

from fitune.doctor.data_peek import DataPeek, peek
from fitune.doctor.symptom import Edit, Symptom
from fitune.messages import _
from fitune.values import Refusal


def name_of(node: ast.AST) -> str:
    """The last name of a call's function: ``transformers.Trainer`` -> "Trainer"."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def text_of(node: ast.AST | None) -> str | None:
    """A string constant's text."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def is_number(node: ast.AST | None, number: int) -> bool:
    """Whether the node is that integer, also as ``-100``."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return is_number(node.operand, -number)
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value == number


@dataclass(frozen=True)
class Call:
    """A call in the script."""

    node: ast.Call

    def keyword(self, name: str) -> ast.keyword | None:
        """The keyword argument with that name."""
        return next((keyword for keyword in self.node.keywords if keyword.arg == name), None)

    @property
    def spreads(self) -> bool:
        """Whether it is given ``**something``."""
        return any(keyword.arg is None for keyword in self.node.keywords)

    def value(self, name: str) -> ast.expr | None:
        """The value of that keyword argument."""
        keyword = self.keyword(name)
        return keyword.value if keyword else None


def seed_keyword(call: Call) -> str:
    """sklearn's split says random_state, the method of datasets says seed."""
    function = call.node.func
    plain = isinstance(function, ast.Name) or name_of(getattr(function, "value", function)) in {"model_selection"}
    return "random_state" if plain else "seed"


class Script:
    """The tree, the positions of its nodes, and edits that keep the formatting."""

    def __init__(self, text: str, name: str, folder: Path | None, tree: ast.Module) -> None:
        self.text, self.name, self.folder, self.tree = text, name, folder, tree
        self._lines = text.split("\n")
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line) + 1)
        self._parents = {child: parent for parent in ast.walk(tree) for child in ast.iter_child_nodes(parent)}

    @classmethod
    def parse(cls, text: str, name: str = "script.py", folder: Path | None = None) -> Script:
        """Refusal when it is not Python."""
        text = text.replace("\r\n", "\n").removeprefix("\ufeff")
        try:
            return cls(text, name, folder, ast.parse(text))
        except (SyntaxError, ValueError) as error:
            line = getattr(error, "lineno", None) or 1
            raise Refusal(
                _("this is not valid Python: {reason}", reason=getattr(error, "msg", error)),
                where=f"{name}:{line}",
                next_step=_("mend that line first; a log with another ending is read as a log"),
            ) from error

    # -- finding ---------------------------------------------------------------------------------------------------

    def walk(self, *kinds: type[ast.AST]) -> Iterator[ast.AST]:
        """Nodes of these kinds, in the order of the text."""
        nodes = [node for node in ast.walk(self.tree) if isinstance(node, kinds)]
        yield from sorted(nodes, key=lambda node: (getattr(node, "lineno", 0), getattr(node, "col_offset", 0)))

    def calls(self, *names: str) -> list[Call]:
        """Calls of functions with one of these last names, or of the script's own classes derived from them."""
        wanted = set(names)
        for node in self.walk(ast.ClassDef):
            if isinstance(node, ast.ClassDef) and any(name_of(base) in wanted for base in node.bases):
                wanted.add(node.name)
        return [
            Call(node) for node in self.walk(ast.Call) if isinstance(node, ast.Call) and name_of(node.func) in wanted
        ]

    def parent(self, node: ast.AST) -> ast.AST | None:
        """The node around this one."""
        return self._parents.get(node)

    def statement(self, node: ast.AST) -> ast.stmt | None:
        """The statement that holds the node."""
        current: ast.AST | None = node
        while current is not None and not isinstance(current, ast.stmt):
            current = self.parent(current)
        return current

    def function(self, node: ast.AST) -> ast.AST:
        """The function around the node, or the module."""
        current = self.parent(node)
        while current is not None and not isinstance(current, ast.FunctionDef | ast.AsyncFunctionDef | ast.Module):
            current = self.parent(current)
        return current or self.tree

    def assigned(self, name: str) -> ast.expr | None:
        """The last value assigned to a name."""
        found: ast.expr | None = None
        for node in self.walk(ast.Assign):
            if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets):
                found = node.value
        return found

    def resolve(self, node: ast.AST | None) -> ast.AST | None:
        """A name's value where it is assigned once in sight; anything else as it is."""
        if isinstance(node, ast.Name) and (value := self.assigned(node.id)) is not None:
            return value
        return node

    def variable_of(self, *class_words: str, method: str = "from_pretrained") -> str | None:
        """The variable that holds ``SomethingWord.from_pretrained(...)``."""
        for call in self.calls(method):
            owner = name_of(call.node.func.value) if isinstance(call.node.func, ast.Attribute) else ""
            parent = self.parent(call.node)
            if any(word in owner for word in class_words) and isinstance(parent, ast.Assign):
                target = parent.targets[0]
                if isinstance(target, ast.Name):
                    return target.id
        return None

    @property
    def tokenizer(self) -> str | None:
        """The tokenizer's variable."""
        return self.variable_of("Tokenizer")

    @property
    def is_token_task(self) -> bool:
        """Whether it trains a token-classification model."""
        return "TokenClassification" in self.text

    @cached_property
    def transformers_major(self) -> int:
        """Major version of the installed transformers; 5 where there is none."""
        try:
            return int(metadata.version("transformers").split(".")[0])
        except metadata.PackageNotFoundError:
            return 5

    @cached_property
    def data(self) -> DataPeek:
        """What the data files named in the script look like."""
        names = [text for node in self.walk(ast.Constant) if (text := text_of(node)) is not None]
        return peek(names, self.folder)

    # -- positions -------------------------------------------------------------------------------------------------

    def _offset(self, line: int, column_bytes: int) -> int:
        text = self._lines[line - 1]
        return self._starts[line - 1] + len(text.encode()[:column_bytes].decode("utf-8", "ignore"))

    def start(self, node: ast.AST) -> int:
        """Character at which a node begins."""
        return self._offset(node.lineno, node.col_offset)  # type: ignore[attr-defined]

    def end(self, node: ast.AST) -> int:
        """Character behind a node."""
        return self._offset(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]

    def source(self, node: ast.AST) -> str:
        """The node's own text."""
        return self.text[self.start(node) : self.end(node)]

    def evidence(self, node: ast.AST) -> str:
        """``file:line: text``."""
        line: int = node.lineno  # type: ignore[attr-defined]
        return f"{self.name}:{line}: {self._lines[line - 1].strip()[:200]}"

    def indent(self, node: ast.AST) -> str:
        """White space before the statement or keyword's line."""
        text = self._lines[node.lineno - 1]  # type: ignore[attr-defined]
        return text[: len(text) - len(text.lstrip())]

    def symptom(
        self, *nodes: ast.AST, edits: Sequence[Edit] = (), confidence: float = 0.95, title: str = "", **rest: object
    ) -> Symptom:
        """A symptom with the nodes' lines as evidence."""
        return Symptom(
            evidence=tuple(dict.fromkeys(self.evidence(node) for node in nodes)),
            line=nodes[0].lineno,  # type: ignore[attr-defined]
            edits=tuple(edits),
            confidence=confidence,
            title=title,
            **rest,  # type: ignore[arg-type]
        )

    # -- edits -----------------------------------------------------------------------------------------------------

    def replace(self, node: ast.AST, text: str) -> Edit:
        """Another text for a node."""
        return Edit(self.start(node), self.end(node), text)

    def rename_keyword(self, keyword: ast.keyword, name: str) -> Edit:
        """Another name for a keyword argument."""
        start = self.start(keyword)
        return Edit(start, start + len(keyword.arg or ""), name)

    def delete_keyword(self, call: Call, keyword: ast.keyword) -> Edit:
        """Take a keyword argument out: its lines when it has them for itself, else up to the neighbouring comma."""
        start, end = self.start(keyword), self.end(keyword)
        line_start, line_end = self._starts[keyword.lineno - 1], self._starts[keyword.end_lineno or keyword.lineno]
        rest = self.text[end:line_end].lstrip().removeprefix(",").strip()
        if not self.text[line_start:start].strip() and (not rest or rest.startswith("#")):
            return Edit(line_start, line_end, "")
        arguments = sorted([*call.node.args, *call.node.keywords], key=self.start)
        position = arguments.index(keyword)
        if position + 1 < len(arguments):
            return Edit(start, self.start(arguments[position + 1]), "")
        return Edit(self.end(arguments[position - 1]) if position else start, end, "")

    def add_keyword(self, call: Call, text: str) -> Edit:
        """One more keyword argument."""
        keywords = call.node.keywords
        if keywords and keywords[0].lineno != call.node.lineno and not self._before_on_line(keywords[0]):
            first = keywords[0]
            at = self._starts[first.lineno - 1]
            return Edit(at, at, f"{self.indent(first)}{text},\n")
        if keywords:
            at = self.start(keywords[0])
            return Edit(at, at, f"{text}, ")
        if call.node.args:
            at = self.end(call.node.args[-1])
            return Edit(at, at, f", {text}")
        at = self.end(call.node) - 1
        return Edit(at, at, text)

    def _before_on_line(self, node: ast.keyword) -> str:
        return self.text[self._starts[node.lineno - 1] : self.start(node)].strip()

    def delete_statement(self, statement: ast.stmt) -> Edit:
        """Take a statement out, with its lines; ``pass`` where it was alone in its block."""
        parent = self.parent(statement)
        body = getattr(parent, "body", None)
        start, end = self._starts[statement.lineno - 1], self._starts[statement.end_lineno or statement.lineno]
        alone = isinstance(body, list) and len(body) == 1 and not isinstance(parent, ast.Module)
        if (
            alone
            or self.text[start : self.start(statement)].strip()
            or self.text[self.end(statement) : end].strip().startswith(";")
        ):
            return Edit(self.start(statement), self.end(statement), "pass")
        return Edit(start, end, "")

    def insert_before(self, statement: ast.stmt, text: str) -> Edit:
        """Lines before a statement, at its indentation."""
        first = min([statement.lineno, *(d.lineno for d in getattr(statement, "decorator_list", []))])
        at, space = self._starts[first - 1], self.indent(statement)
        return Edit(at, at, "".join(f"{space}{line}\n" if line else "\n" for line in text.split("\n")))

    def insert_after(self, statement: ast.stmt, text: str) -> Edit:
        """Lines behind a statement, at its indentation."""
        at, space = self._starts[statement.end_lineno or statement.lineno], self.indent(statement)
        lines = "".join(f"{space}{line}\n" for line in text.split("\n"))
        return Edit(at, at, lines) if at <= len(self.text) else Edit(len(self.text), len(self.text), "\n" + lines)

    def add_import(self, text: str, name: str) -> list[Edit]:
        """An import behind the others, unless the name is imported already."""
        imports: list[ast.stmt] = []
        for node in self.tree.body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                imports.append(node)
                if any((alias.asname or alias.name) == name for alias in node.names):
                    return []
        if not imports:
            return [self.insert_before(self.tree.body[0], text)] if self.tree.body else []
        return [self.insert_after(imports[-1], text)]

    def mend(self, edits: Sequence[Edit]) -> str:
        """The text with all edits; of overlapping ones the first is done, insertions at one place follow each other."""
        done = self.text
        lowest = len(self.text) + 1
        unique = list(dict.fromkeys(edits))
        order = sorted(range(len(unique)), key=lambda i: (-unique[i].start, -unique[i].end, -i))
        for i in order:
            edit = unique[i]
            if edit.end > lowest or (edit.start == lowest and edit.end > edit.start):
                continue
            done = done[: edit.start] + edit.text + done[edit.end :]
            lowest = edit.start
        ast.parse(done)
        return done
