"""The text form of rules, and its parser.

    2*A + B <= 100                                        linear: ≤, ≥ or =, terms on both sides
    A + B + C = 1
    forbid: temperature > 180 and solvent = toluene       a combination that must not be
    not (temperature > 180 and solvent = toluene)         the same
    catalyst = Pd                                         a fixed parameter
    ligand in (XPhos, SPhos)                              one of these categories
    temperature <= 80 or solvent = water                  at least one of several conditions
    T in steps of 5                                       values on a step, from its lowest value
    T in steps of 5 from 20                               or from another one

A name or a category that is not one plain word is written in quotes: 'T [°C]' or "ethyl acetate". A name may lack its
unit where no other parameter is called so: T for 'T [°C]'.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn

from headstart.data.axis import Axis
from headstart.data.ranges import FloatRange
from headstart.data.rules.rule import (
    Clause,
    FixedValue,
    Forbidden,
    LinearRule,
    OnSteps,
    Relation,
    SettingRule,
    axis_named,
    require_rule,
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
_REVERSE = {
    **{Relation.EQUAL: Relation.OTHER, Relation.OTHER: Relation.EQUAL},
    **{Relation.AT_MOST: Relation.ABOVE, Relation.ABOVE: Relation.AT_MOST},
    **{Relation.AT_LEAST: Relation.BELOW, Relation.BELOW: Relation.AT_LEAST},
}
_SIGNS = {"+": 1.0, "-": -1.0, "−": -1.0}


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
    return require_rule(_Parser(cited, space, text).rule(), space, cited)


def parse_amount(text: str, unit: str, cited: str) -> tuple[float, float]:
    """A number that may be relative to a quantity called ``unit``: 1.1 * baseline + 2 is (2, 1.1).

    Args:
        text: The sum, as on one side of a rule.
        unit: The one name that it may have.
        cited: How messages call the text.

    Returns:
        The number, and the factor of the quantity.

    Raises:
        InputError: The text is no such sum.
    """
    terms, number = _Parser(cited, Space.of({unit: FloatRange(0.0, 1.0)}), text).amount()
    return number, terms.get(unit, 0.0)


def read_rules(rules: Sequence[SettingRule | str], space: Space) -> tuple[SettingRule, ...]:
    """The rules, those given as text parsed; fails on one that is not about the space."""
    return tuple(parse_rule(rule, space) if isinstance(rule, str) else require_rule(rule, space) for rule in rules)


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    place: int

    def __str__(self) -> str:
        return "the end" if self.kind == "end" else repr(self.text)

    @property
    def named(self) -> bool:
        return self.kind in ("name", "quoted")


@dataclass
class _Parser:
    """A recursive-descent parser over the tokens; ``cited`` is how messages call the rule."""

    cited: str
    space: Space
    text: str
    at: int = 0

    @cached_property
    def tokens(self) -> list[_Token]:
        found, place = [], 0
        while rest := self.text[place:].lstrip():
            match = _TOKEN.match(self.text, place)
            if match is None:
                remedy = "Put names with such characters in quotes"
                self._fail(f"{rest[0]!r} means nothing there", remedy, len(self.text) - len(rest))
            kind = str(match.lastgroup)
            word = match.group(kind)
            found.append(_Token(kind, word[1:-1] if kind == "quoted" else word, match.start(kind)))
            place = match.end()
        return [*found, _Token("end", "", len(self.text))]

    def rule(self) -> SettingRule:
        if self._now.kind == "end":
            self._fail("there is nothing", "Write a rule, such as 'A + B <= 1'")
        if self._take("forbid"):
            self._take(":")
            return self._ended(self._combination(), "and")
        if self._take("not"):
            if not self._take("("):
                self._fail(f"expected '(' after not, but there is {self._now}", "Write 'not (A > 1 and B < 2)'")
            rule = self._combination()
            if not self._take(")"):
                self._fail(f"expected 'and' or ')', but there is {self._now}", "Close the bracket")
            return self._ended(rule)
        if any(token.text == "or" and token.kind == "name" for token in self.tokens):
            return self._either()
        second = self.tokens[self.at + 1].text
        if self._now.named and (second == "in" or second in _RELATIONS):
            axis = self._axis(self._now)
            if second == "in":
                return self._one_of(axis) if self.tokens[self.at + 2].text == "(" else self._steps(axis)
            if axis.categorical:
                clause = self._clause()
                match clause.relation:
                    case Relation.EQUAL:
                        return self._ended(FixedValue(axis.name, clause.value))
                    case Relation.OTHER:
                        return self._ended(Forbidden((Clause(axis.name, Relation.EQUAL, clause.value),)))
                return Forbidden((clause,))  # which has no order, and the check of the rule says so
        return self._linear()

    def amount(self) -> tuple[dict[str, float], float]:
        found = self._sum()
        if self._now.kind != "end":
            self._fail(f"expected the end, but there is {self._now}", "Write a number, as in 0.5")
        return found

    def _either(self) -> SettingRule:
        """A or B: never neither of them."""
        clauses = [self._clause()]
        while self._take("or"):
            clauses.append(self._clause())
        against = tuple(Clause(c.parameter, _REVERSE[c.relation], c.value) for c in clauses)
        return self._ended(Forbidden(against), "or")

    def _one_of(self, axis: Axis) -> SettingRule:
        """X in (A, B): never another one."""
        self.at += 3
        if not axis.categorical:
            self._fail(f"{axis.name!r} is a number, and has no list of categories", "Write two rules, with <= and >=")
        levels = [self._category(axis)]
        while self._take(","):
            levels.append(self._category(axis))
        if not self._take(")"):
            self._fail(f"expected a comma or ')', but there is {self._now}", "Close the bracket")
        return self._ended(Forbidden(tuple(Clause(axis.name, Relation.OTHER, level) for level in levels)))

    def _combination(self) -> Forbidden:
        clauses = [self._clause()]
        while self._take("and"):
            clauses.append(self._clause())
        if self._now.text == "or" and self._now.kind != "quoted":
            self._fail("'or' cannot stand in what is forbidden", "Write a rule for each")
        return Forbidden(tuple(clauses))

    def _clause(self) -> Clause:
        if not self._now.named:
            self._fail(f"expected a parameter, but there is {self._now}", "Write conditions as 'temperature > 180'")
        axis = self._axis(self._next())
        relation = self._relation()
        return Clause(axis.name, relation, self._category(axis) if axis.categorical else self._number())

    def _steps(self, axis: Axis) -> SettingRule:
        self.at += 2
        if not (self._take("steps") and self._take("of")):
            remedy = f"Write {shown_name(axis.name)} in steps of 5"
            self._fail(f"expected 'steps of', but there is {self._now}", remedy)
        step = self._number()
        start = self._number() if self._take("from") else float(getattr(axis.distribution, "low", 0.0))
        return self._ended(OnSteps(axis.name, step, start))

    def _linear(self) -> SettingRule:
        terms, known = self._sum()
        token, relation = self._now, self._relation()
        if relation in (Relation.ABOVE, Relation.BELOW, Relation.OTHER):
            self._fail(f"a linear rule has <=, >= or =, not {token}", "Write one of them", token.place)
        right, bound = self._sum()
        if self._now.text in _RELATIONS:
            self._fail("there is a second relation", "Write two rules")
        for name, factor in right.items():
            terms[name] = terms.get(name, 0.0) - factor
        terms = {name: factor for name, factor in terms.items() if factor}
        bound -= known
        if not terms:
            self._fail("no parameter is left in it", "Name at least one", 0)
        if relation is Relation.EQUAL and len(terms) == 1:
            ((name, factor),) = terms.items()
            return self._ended(FixedValue(name, bound / factor), "+")
        return self._ended(LinearRule(tuple(terms.items()), relation, bound), "+")

    def _sum(self) -> tuple[dict[str, float], float]:
        """The factors of the parameters, and the rest."""
        terms: dict[str, float] = {}
        known, factor, name = 0.0, self._signs(), None
        while True:
            if self._now.kind == "number":
                factor *= self._number()
            elif self._now.named and name is None:
                name = self._axis(self._next()).name
            else:
                self._no_term(name)
            while self._take("/"):
                divisor = self._number()
                if divisor == 0:
                    self._fail("something is divided by 0", "Use another number")
                factor /= divisor
            # a factor may be followed by its parameter with no sign between: 2 A
            if self._take("*") or self._take("·") or (name is None and self._now.named):
                continue
            if name is None:
                known += factor
            else:
                terms[name] = terms.get(name, 0.0) + factor
            if self._now.text not in _SIGNS:
                return terms, known
            factor, name = self._signs(), None

    def _no_term(self, name: str | None) -> NoReturn:
        if self._now.text == "(":
            self._fail("brackets cannot be used in a sum", "Write 2*A + 2*B for 2*(A + B)")
        self._refuse_comma()
        if name is not None and self._now.named:
            self._fail(f"{name!r} is multiplied by {self._now}", "A linear rule has sums of parameters only")
        self._fail(f"expected a parameter or a number, but there is {self._now}", "Write rules as '2*A + B <= 100'")

    @property
    def _now(self) -> _Token:
        return self.tokens[self.at]

    def _next(self) -> _Token:
        self.at += 1
        return self.tokens[self.at - 1]

    def _take(self, text: str) -> bool:
        """Whether the next token is this word or sign, which is then passed."""
        found = self._now.text == text and self._now.kind != "quoted"
        self.at += found
        return found

    def _axis(self, token: _Token) -> Axis:
        return axis_named(self.space, token.text, f"{self.cited}, character {token.place + 1}")

    def _relation(self) -> Relation:
        if self._now.kind != "sign" or self._now.text not in _RELATIONS:
            remedy = "Write <=, >= or =, and names of several words in quotes"
            self._fail(f"expected a relation, but there is {self._now}", remedy)
        return _RELATIONS[self._next().text]

    def _signs(self) -> float:
        sign = 1.0
        while self._now.text in _SIGNS and self._now.kind == "sign":
            sign *= _SIGNS[self._next().text]
        return sign

    def _number(self) -> float:
        sign = self._signs()
        if self._now.kind != "number":
            self._fail(f"expected a number, but there is {self._now}", "Write it with digits, as in 0.5")
        return sign * float(self._next().text)

    def _category(self, axis: Axis) -> Any:
        found = [level for level in axis.levels if self._now.kind != "end" and str(level) == self._now.text]
        if not found:
            known = ", ".join(str(level) for level in axis.choices)
            remedy = "Correct it, and put it in quotes if it has several words"
            self._fail(f"{self._now} is no category of {axis.name!r} ({known})", remedy)
        self.at += 1
        return found[0]

    def _ended(self, rule: SettingRule, more: str = "") -> SettingRule:
        self._refuse_comma()
        if self._now.kind != "end":
            expected = f"expected {more!r} or the end" if more else "expected the end"
            self._fail(f"{expected}, but there is {self._now}", "Names of several words are written in quotes")
        return rule

    def _refuse_comma(self) -> None:
        if self._now.text == ",":
            self._fail("a comma means nothing there", "Write decimals with a point, as in 0.5")

    def _fail(self, what: str, remedy: str, place: int | None = None) -> NoReturn:
        place = self._now.place if place is None else place
        raise InputError(f"{self.cited}, character {place + 1}: {what}. {remedy}.")
