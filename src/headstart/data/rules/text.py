"""The text form of rules, and its parser.

    2*A + B <= 100                                        linear: ≤, ≥ or =, terms on both sides
    A + B + C = 1
    forbid: temperature > 180 and solvent = toluene       a combination that must not be
    not (temperature > 180 and solvent = toluene)         the same
    catalyst = Pd                                         a fixed parameter
    T in steps of 5                                       values on a step, from its lowest value
    T in steps of 5 from 20                               or from another one

A name or a category that is not one plain word is written in quotes: 'T [°C]', "ethyl acetate" or `T [°C]`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from headstart.data.axis import Axis
from headstart.data.rules.rule import (
    Clause,
    FixedValue,
    Forbidden,
    LinearRule,
    OnSteps,
    Relation,
    SettingRule,
    axis_named,
    shown_name,
)
from headstart.data.space import Space
from headstart.errors import InputError

_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<quoted>'[^']*'|\"[^\"]*\"|`[^`]*`)"
    r"|(?P<name>[^\W\d]\w*)|(?P<sign><=|>=|==|!=|[<>=≤≥≠+\-−*·/():,]))"
)
_RELATIONS = {
    **{"<=": Relation.AT_MOST, "≤": Relation.AT_MOST, ">=": Relation.AT_LEAST, "≥": Relation.AT_LEAST},
    **{"=": Relation.EQUAL, "==": Relation.EQUAL, "!=": Relation.OTHER, "≠": Relation.OTHER},
    **{"<": Relation.BELOW, ">": Relation.ABOVE},
}
_SIGNS = {"+": 1.0, "-": -1.0, "−": -1.0}
_END = "the end"


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    place: int

    def __str__(self) -> str:
        return _END if self.kind == "end" else repr(self.text)


def parse_rule(text: str, space: Space, where: str = "") -> SettingRule:
    """Parse a rule.

    Args:
        text: The rule, such as ``2*A + B <= 100`` or ``forbid: T > 180 and solvent = toluene``.
        space: The space whose parameters and categories it names.
        where: The file and the line that the rule stands in, for messages.

    Returns:
        The rule.

    Raises:
        InputError: The text is no rule, or names a parameter or a category that the space does not have; the message
            holds the text, the place and what to write instead.
    """
    cited = f"{where}: rule {text!r}" if where else f"Rule {text!r}"
    reader = _Reader(cited, space, _tokens(text, cited))
    rule = reader.rule()
    rule.require(space)
    return rule


def read_rules(rules: Sequence[SettingRule | str], space: Space) -> tuple[SettingRule, ...]:
    """The rules, those given as text parsed; fails on one that is not about the space."""
    read = tuple(parse_rule(rule, space) if isinstance(rule, str) else rule for rule in rules)
    for rule in read:
        rule.require(space)
    return read


def _tokens(text: str, cited: str) -> list[_Token]:
    found, place = [], 0
    while text[place:].strip():
        match = _TOKEN.match(text, place)
        if match is None:
            place += len(text[place:]) - len(text[place:].lstrip())
            _fail(cited, place, f"{text[place]!r} means nothing there", "Put names with such characters in quotes")
        kind = str(match.lastgroup)
        word = match.group(kind)
        found.append(_Token(kind, word[1:-1] if kind == "quoted" else word, match.start(kind)))
        place = match.end()
    return [*found, _Token("end", "", len(text))]


def _fail(cited: str, place: int, what: str, remedy: str) -> NoReturn:
    raise InputError(f"{cited}, character {place + 1}: {what}. {remedy}.")


@dataclass(slots=True)
class _Reader:
    """A recursive-descent parser over the tokens; ``cited`` is how messages call the rule."""

    cited: str
    space: Space
    tokens: list[_Token]
    at: int = field(default=0)

    def rule(self) -> SettingRule:
        if self._now.kind == "end":
            self._fail("there is nothing", "Write a rule, such as 'A + B <= 1'")
        if self._word("forbid"):
            self._take("sign", ":")
            return self._ended(self._combination(), "and")
        if self._word("not"):
            if self._take("sign", "(") is None:
                self._fail(f"expected '(' after not, but there is {self._now}", "Write 'not (A > 1 and B < 2)'")
            rule = self._combination()
            if self._take("sign", ")") is None:
                self._fail(f"expected 'and' or ')', but there is {self._now}", "Close the bracket")
            return self._ended(rule)
        first, second = self._now, self.tokens[self.at + 1]
        if first.kind in ("name", "quoted") and (second.text == "in" or second.text in _RELATIONS):
            axis = self._axis(first)
            if second.text == "in":
                return self._steps(axis)
            if axis.categorical:
                return self._category(axis)
        return self._linear()

    # ── the kinds of rules ────────────────────────────────────────────────────────────────────────────────────────

    def _combination(self) -> Forbidden:
        clauses = [self._clause()]
        while self._word("and"):
            clauses.append(self._clause())
        return Forbidden(tuple(clauses))

    def _clause(self) -> Clause:
        if self._now.kind not in ("name", "quoted"):
            self._fail(f"expected a parameter, but there is {self._now}", "Write conditions as 'temperature > 180'")
        axis = self._axis(self._next())
        relation = self._relation()
        return Clause(axis.name, relation, self._value(axis))

    def _steps(self, axis: Axis) -> SettingRule:
        self.at += 2
        if axis.categorical:
            self._fail(f"{axis.name!r} has categories, which have no steps", "Use a numeric parameter")
        if not (self._word("steps") and self._word("of")):
            self._fail(
                f"expected 'steps of', but there is {self._now}", f"Write '{shown_name(axis.name)} in steps of 5'"
            )
        step = self._number()
        start = self._number() if self._word("from") else float(axis.distribution.low)  # type: ignore[union-attr]
        return self._ended(OnSteps(axis.name, step, start))

    def _category(self, axis: Axis) -> SettingRule:
        self.at += 1
        place, relation = self._now.place, self._relation()
        value = self._value(axis)
        match relation:
            case Relation.EQUAL:
                return self._ended(FixedValue(axis.name, value))
            case Relation.OTHER:
                return self._ended(Forbidden((Clause(axis.name, Relation.EQUAL, value),)))
        _fail(self.cited, place, f"{axis.name!r} has categories, which have no order", "Use = or !=")

    def _linear(self) -> SettingRule:
        left, known = self._sum()
        place, relation = self._now.place, self._relation()
        if relation in (Relation.ABOVE, Relation.BELOW, Relation.OTHER):
            _fail(
                self.cited, place, f"a linear rule has <=, >= or =, not {self.tokens[self.at - 1]}", "Write one of them"
            )
        right, other = self._sum()
        if self._now.text in _RELATIONS:
            self._fail("there is a second relation", "Write two rules")
        terms = dict(left)
        for name, factor in right.items():
            terms[name] = terms.get(name, 0.0) - factor
        terms = {name: factor for name, factor in terms.items() if factor}
        if not terms:
            _fail(self.cited, 0, "no parameter is left in it", "Name at least one")
        bound = other - known
        if relation is Relation.EQUAL and len(terms) == 1:
            ((name, factor),) = terms.items()
            return self._ended(FixedValue(name, bound / factor), "+")
        return self._ended(LinearRule(tuple(terms.items()), relation, bound), "+")

    def _sum(self) -> tuple[dict[str, float], float]:
        """The factors of the parameters, and the rest."""
        terms: dict[str, float] = {}
        known, first = 0.0, True
        while first or self._now.text in _SIGNS:
            factor, name = self._signs(first), None
            while True:
                if self._now.kind == "number":
                    factor *= self._number()
                elif self._now.kind in ("name", "quoted") and name is None:
                    axis = self._axis(self._next())
                    if axis.categorical:
                        self.at -= 1
                        self._fail(f"{axis.name!r} has categories, which cannot be added up", "Use a number")
                    name = axis.name
                else:
                    self._no_term(name)
                while self._take("sign", "/"):
                    divisor = self._number()
                    if divisor == 0:
                        self._fail("something is divided by 0", "Use another number")
                    factor /= divisor
                if not (self._take("sign", "*") or self._take("sign", "·") or self._implied(name)):
                    break
            if name is None:
                known += factor
            else:
                terms[name] = terms.get(name, 0.0) + factor
            first = False
        return terms, known

    def _implied(self, name: str | None) -> bool:
        """Whether a factor is followed by its parameter with no sign between: 2 A."""
        return name is None and self._now.kind in ("name", "quoted")

    def _signs(self, first: bool) -> float:
        sign = 1.0
        while self._now.text in _SIGNS and self._now.kind == "sign":
            sign *= _SIGNS[self._next().text]
        if not first and self._now.kind == "end":
            self._fail("the sum has no end", "Add what is missing, or leave the sign out")
        return sign

    def _no_term(self, name: str | None) -> NoReturn:
        if self._now.text == "(":
            self._fail("brackets cannot be used in a sum", "Write 2*A + 2*B for 2*(A + B)")
        if self._now.text == ",":
            self._fail("a comma means nothing there", "Write decimals with a point, as in 0.5")
        if name is not None and self._now.kind in ("name", "quoted"):
            self._fail(f"{name!r} is multiplied by {self._now}", "A linear rule has sums of parameters only")
        self._fail(f"expected a parameter or a number, but there is {self._now}", "Write rules as '2*A + B <= 100'")

    # ── tokens ────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def _now(self) -> _Token:
        return self.tokens[self.at]

    def _next(self) -> _Token:
        self.at += 1
        return self.tokens[self.at - 1]

    def _axis(self, token: _Token) -> Axis:
        return axis_named(self.space, token.text, f"{self.cited}, character {token.place + 1}")

    def _take(self, kind: str, text: str) -> _Token | None:
        return self._next() if (self._now.kind, self._now.text) == (kind, text) else None

    def _word(self, word: str) -> bool:
        return self._take("name", word) is not None

    def _relation(self) -> Relation:
        if self._now.kind != "sign" or self._now.text not in _RELATIONS:
            remedy = "Write <=, >= or =, and names of several words in quotes"
            self._fail(f"expected a relation, but there is {self._now}", remedy)
        return _RELATIONS[self._next().text]

    def _number(self) -> float:
        sign = self._signs(first=True)
        if self._now.kind != "number":
            self._fail(f"expected a number, but there is {self._now}", "Write it with digits, as in 0.5")
        return sign * float(self._next().text)

    def _value(self, axis: Axis) -> Any:
        if not axis.categorical:
            return self._number()
        if self._now.kind not in ("name", "number", "quoted"):
            self._fail(f"expected a category of {axis.name!r}, but there is {self._now}", "Put it in quotes")
        token = self._next()
        for level in axis.levels:
            if str(level) == token.text:
                return level
        known = ", ".join(str(level) for level in axis.choices)
        _fail(
            self.cited,
            token.place,
            f"{token.text!r} is no category of {axis.name!r} ({known})",
            "Correct it, and put it in quotes if it has several words",
        )

    def _ended(self, rule: SettingRule, more: str = "") -> SettingRule:
        if self._now.text == ",":
            self._fail("a comma means nothing there", "Write decimals with a point, as in 0.5")
        if self._now.kind != "end":
            expected = f"expected {more!r} or the end" if more else "expected the end"
            self._fail(f"{expected}, but there is {self._now}", "Names of several words are written in quotes")
        return rule

    def _fail(self, what: str, remedy: str) -> NoReturn:
        _fail(self.cited, self._now.place, what, remedy)
