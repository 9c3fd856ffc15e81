"""The C preprocessor, as far as an estimate needs it.

Conditions, macros and headers in quotes are handled.  Headers of the C library, which have no code,
are left out, and so is what depends on a condition that only a compiler can evaluate.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

__all__ = ["LITERAL", "preprocessed"]

_log = logging.getLogger(__name__)

LITERAL = r""" "(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)+' """.replace(" ", "")
"""Pattern of a string or character in C."""

_COMMENT = re.compile(LITERAL + r"|/\*.*?\*/|//[^\n]*", re.S)
_DIRECTIVE = re.compile(r"\s*#\s*(\w+)\s*(.*)")
_INCLUDE = re.compile(r'"([^"]+)"')
_MACRO = re.compile(r"(\w+)(?:\(([^)]*)\))?\s*(.*)", re.S)
_DEFINED = re.compile(r"defined\s*(?:\(\s*(\w+)\s*\)|(\w+))")
_TOKEN = re.compile(LITERAL + r"|\b[A-Za-z_]\w*")
_BRACKETS = re.compile(LITERAL + "|[(),]")
_OPENS = re.compile(r"\s*\(")
_NAME = re.compile(r"\b[A-Za-z_]\w*")
_PASTED = re.compile(r"\w+(?:\s*##\s*\w+)+")
_SUFFIX = re.compile(r"\b(0[xX][0-9a-fA-F]+|\d+)[uUlL]+\b")
_CALL = re.compile(r"[\d)]\s*\(")
_CONDITION = re.compile(r"(?:0[xX][0-9a-fA-F]+|\d+|and|or|not|[()<>=!+-]|\s)+")


def preprocessed(
    text: str,
    name: str,
    folders: Sequence[Path],
    macros: Mapping[str, str],
    headers: Mapping[str, str],
) -> str:
    """Return the text of a C file with its headers, without comments and directives.

    Args:
        text: the file's text.
        name: its name, for errors.
        folders: folders of headers.
        macros: macros that the compiler defines.
        headers: text of generated headers by name.
    """
    reader = _Reader(folders, macros, headers)
    reader.read(text, name)
    return reader.text()


class _Reader:
    def __init__(
        self, folders: Sequence[Path], macros: Mapping[str, str], headers: Mapping[str, str]
    ) -> None:
        self._folders = folders
        self._headers = headers
        # Of each macro its parameters, None if it has no brackets, and its body.
        self._macros: dict[str, tuple[list[str] | None, str]] = {
            name: (None, body) for name, body in macros.items()
        }
        self._seen: set[str] = set()
        self._lines: list[str] = []

    def text(self) -> str:
        return self._expanded("\n".join(self._lines), frozenset())

    def read(self, text: str, name: str) -> None:
        """Take the lines that conditions include; remember macros; follow headers."""
        open_ifs: list[tuple[bool, bool]] = []  # this branch is taken; one of its branches was
        for line in _COMMENT.sub(_blank, text).replace("\\\n", " ").split("\n"):
            taken = all(now for now, _ in open_ifs)
            found = _DIRECTIVE.match(line)
            if found is None:
                if taken:
                    self._lines.append(line)
                continue
            word, rest = found.groups()
            if word in ("if", "ifdef", "ifndef"):
                holds = taken and self._holds(_TESTS[word].format(rest), name)
                open_ifs.append((holds, holds))
            elif word in ("elif", "else"):
                _, before = open_ifs.pop()
                reachable = not before and all(now for now, _ in open_ifs)
                holds = reachable and (word == "else" or self._holds(rest, name))
                open_ifs.append((holds, before or holds))
            elif word == "endif":
                open_ifs.pop()
            elif taken:
                self._obey(word, rest)

    def _obey(self, word: str, rest: str) -> None:
        if word == "define" and (macro := _MACRO.match(rest)):
            names = None if macro[2] is None else [name.strip() for name in macro[2].split(",")]
            self._macros[macro[1]] = (names, macro[3].strip())
        elif word == "undef":
            self._macros.pop(rest.strip(), None)
        elif word == "include" and (header := _INCLUDE.match(rest)) and header[1] not in self._seen:
            self._seen.add(header[1])
            text = self._headers.get(header[1])
            places = [folder / header[1] for folder in self._folders]
            place = next((place for place in places if place.is_file()), None)
            if text is None and place is not None:
                text = place.read_text(encoding="utf-8")
            self.read(text or "", header[1])

    def _holds(self, condition: str, name: str) -> bool:
        known = self._expanded(self._without_defined(condition), frozenset())
        known = _NAME.sub("0", self._without_defined(known))  # an unknown name is 0
        known = _SUFFIX.sub(r"\1", known).replace("&&", " and ").replace("||", " or ")
        known = re.sub(r"!(?!=)", " not ", known).strip()
        try:
            if _CONDITION.fullmatch(known) and not _CALL.search(known):
                return bool(eval(known, {"__builtins__": {}}))
        except SyntaxError:
            pass
        _log.info("%s: left out what depends on '%s'", name, condition.strip())
        return False

    def _without_defined(self, condition: str) -> str:
        return _DEFINED.sub(lambda m: str(int((m[1] or m[2]) in self._macros)), condition)

    def _expanded(self, text: str, hidden: frozenset[str]) -> str:
        """Return text with its macros replaced, except for those being replaced already."""
        parts, at = [], 0
        for found in _TOKEN.finditer(text):
            name = found[0]
            if found.start() < at or name in hidden or name not in self._macros:
                continue
            parameters, body = self._macros[name]
            end = found.end()
            if parameters is not None:
                bracket = _OPENS.match(text, end)
                if bracket is None:
                    continue
                arguments, end = _arguments(text, bracket.end())
                body = self._substituted(
                    body, dict(zip(parameters, arguments, strict=False)), hidden
                )
            parts += [text[at : found.start()], self._expanded(body, hidden | {name})]
            at = end
        return "".join([*parts, text[at:]])

    def _substituted(self, body: str, values: dict[str, str], hidden: frozenset[str]) -> str:
        pasted = _PASTED.sub(
            lambda m: "".join(values.get(name, name) for name in re.split(r"\s*##\s*", m[0])), body
        )
        quoted = re.sub(
            r"(?<!#)#\s*(\w+)", lambda m: f'"{values[m[1]]}"' if m[1] in values else m[0], pasted
        )
        full = {name: self._expanded(value, hidden) for name, value in values.items()}
        return _TOKEN.sub(lambda m: full.get(m[0], m[0]), quoted)


_TESTS = {"if": "{}", "ifdef": "defined({})", "ifndef": "!defined({})"}


def _blank(found: re.Match[str]) -> str:
    """A comment becomes a blank, a literal stays."""
    return " " if found[0].startswith("/") else found[0]


def _arguments(text: str, at: int) -> tuple[list[str], int]:
    """Return the arguments of a macro behind its bracket, and where they end."""
    depth, found, start = 1, [], at
    for token in _BRACKETS.finditer(text, at):
        if token[0] == "(":
            depth += 1
        elif token[0] == ")":
            depth -= 1
        if depth == 0 or (depth == 1 and token[0] == ","):
            found.append(text[start : token.start()].strip())
            start = token.end()
        if depth == 0:
            return found, token.end()
    return found, len(text)
