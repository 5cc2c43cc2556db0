"""Random spaces with random rules that some setting keeps, and whether any point that a domain offers breaks one.

python -m tests.unit.decide.ruled.random_rules --spaces 10000 --suggestions 300 --seconds 600
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

import numpy as np
import torch

from headstart import GPBO, Dataset, FitOptions, suggest
from headstart.data.conditions import Condition
from headstart.data.ranges import Choices, DiscreteNumbers, Distribution, FloatRange, IntRange, has_single_value
from headstart.data.rules.rule import Clause, FixedValue, Forbidden, LinearRule, OnSteps, Relation, SettingRule
from headstart.data.space import Space
from headstart.decide.design import design_point
from headstart.decide.ruled.ruled import Ruled

STEPS = (0.05, 0.1, 0.25, 0.5)


def random_space(rng: np.random.Generator) -> Space:
    """Floats, log floats, whole numbers, steps, lists, categories; some there only for some values of another."""
    distributions: dict[str, Distribution] = {}
    for i in range(rng.integers(1, 8)):
        low = float(np.round(rng.normal() * 10 ** rng.integers(0, 3), 2))
        match rng.integers(8):
            case 0 | 1:
                distributions[f"x{i}"] = FloatRange(low, low + float(np.round(1 + 10 * rng.random(), 2)))
            case 2:
                start = float(10.0 ** rng.integers(-4, 1))
                distributions[f"x{i}"] = FloatRange(start, start * float(10.0 ** rng.integers(1, 5)), log=True)
            case 3:
                distributions[f"x{i}"] = IntRange(int(low), int(low) + int(rng.integers(0, 60)))
            case 4:
                distributions[f"x{i}"] = IntRange(1, int(rng.integers(2, 500)), log=True)
            case 5:
                step = float(rng.choice(STEPS))
                distributions[f"x{i}"] = FloatRange(0.0, round(step * int(rng.integers(1, 40)), 10), step=step)
            case 6:
                distributions[f"x{i}"] = random_list(rng)
            case _:
                distributions[f"x{i}"] = Choices(tuple("abcd"[: rng.integers(1, 5)]))
    if all(map(has_single_value, distributions.values())):
        distributions["more"] = FloatRange(0.0, 1.0)
    names = list(distributions)
    conditions: dict[str, Condition] = {}
    for name in names[1:]:
        parent = names[int(rng.integers(names.index(name)))]
        own: Any = distributions[parent]
        if rng.random() < 0.25 and isinstance(own, Choices):
            conditions[name] = Condition(parent, without=(own.choices[0],))
        elif rng.random() < 0.25 and isinstance(own, IntRange):
            conditions[name] = Condition(parent, least=(own.low + own.high) / 2)
    return Space.of(distributions, conditions=conditions)


def random_list(rng: np.random.Generator) -> DiscreteNumbers:
    """Numbers at uneven gaps or ratios; now and then so many that they are not compared one by one."""
    n = int(rng.integers(1, 40 if rng.random() < 0.1 else 9))
    if rng.random() < 0.5:
        return DiscreteNumbers(tuple(np.round(10.0 ** rng.uniform(-2, 3, size=n), 3).tolist()))
    return DiscreteNumbers(tuple(rng.integers(-20, 200, size=n).tolist()))


def random_rules(space: Space, rng: np.random.Generator) -> list[SettingRule]:
    """Up to five rules that one setting of the space keeps."""
    (row,) = space.decode(torch.from_numpy(rng.random((1, space.d))))
    numbers = [axis.name for axis in space.axes if not axis.categorical and axis.name in row]
    rules: list[SettingRule] = []
    for _ in range(rng.integers(1, 6)):
        kind = rng.integers(6)
        if kind <= 2 and numbers:
            own = rng.permutation(numbers)[: rng.integers(1, len(numbers) + 1)]
            factors = rng.choice([-2.0, -1.0, 0.5, 1.0, 1.0, 1.0, 3.0], size=len(own))
            factors = np.ones(len(own)) if rng.random() < 0.4 else factors
            total = float(sum(f * row[name] for f, name in zip(factors, own, strict=True)))
            relation = (Relation.AT_MOST, Relation.AT_LEAST, Relation.EQUAL)[rng.integers(3)]
            slack = 0.0 if rng.random() < 0.3 else abs(total) * rng.random()
            bound = total + {Relation.AT_MOST: slack, Relation.AT_LEAST: -slack, Relation.EQUAL: 0.0}[relation]
            rules.append(LinearRule(tuple(zip(map(str, own), map(float, factors), strict=True)), relation, bound))
        elif kind == 3:
            rules.append(_forbidden(space, row, rng))
        elif kind == 4 and rng.random() < 0.3:
            name = str(rng.choice(list(row)))
            rules.append(FixedValue(name, row[name]))
        elif kind == 5 and numbers:
            name = str(rng.choice(numbers))
            rules.append(OnSteps(name, float(rng.choice([*STEPS, 1.0, 2.0, 3.0])), float(row[name])))
    return [rule for rule in rules if rule.holds(row)]


def _forbidden(space: Space, row: dict[str, Any], rng: np.random.Generator) -> Forbidden:
    """A combination with at least one condition that the row does not meet."""
    clauses = []
    for name in rng.permutation(list(row))[: rng.integers(1, 4)]:
        axis = next(axis for axis in space.axes if axis.name == name)
        if axis.categorical:
            relation = (Relation.EQUAL, Relation.OTHER)[rng.integers(2)]
            clauses.append(Clause(axis.name, relation, axis.choices[rng.integers(len(axis.choices))]))
        else:
            low, high = axis.distribution.low, axis.distribution.high
            value = row[name] if rng.random() < 0.3 else float(np.round(low + rng.random() * (high - low), 3))
            clauses.append(Clause(axis.name, list(Relation)[rng.integers(6)], value))
    return Forbidden(tuple(clauses))


def random_domain(seed: int) -> Ruled:
    """A space with rules that can be kept."""
    rng = np.random.default_rng(seed)
    space = random_space(rng)
    return Ruled(space, random_rules(space, rng))


def offered(domain: Ruled, seed: int, n: int = 16) -> dict[str, torch.Tensor]:
    """The points that a search would look at, by where they come from."""
    generator = torch.Generator().manual_seed(seed)
    found = {"spread": domain.spread(n, generator), "uniform": domain.uniform(n, generator)}
    anywhere = 2 * torch.rand(n, domain.d, generator=generator, dtype=torch.float64) - 0.5
    found["snap"] = domain.snap(anywhere)
    found["near"] = domain.near(anywhere[:3], 4, generator)
    moves, listing = domain.exchanges(found["spread"][:2]), domain.listing
    if moves is not None:
        found["exchanges"] = moves.reshape(-1, domain.d)
    if listing is not None:
        found["listing"] = listing
    found["design"] = torch.stack(
        [design_point(domain, found["spread"][:k], generator, past=anywhere[:1]) for k in (0, 3)]
    )
    return found


def suggested(domain: Ruled, seed: int) -> torch.Tensor:
    """A batch of two after results anywhere, whether they keep the rules or not, and one that is awaited."""
    generator = torch.Generator().manual_seed(seed)
    X = domain.space.snap(torch.rand(7, domain.d, generator=generator, dtype=torch.float64))
    y = (X - 0.3).square().sum(-1) + 0.1 * torch.rand(7, generator=generator, dtype=torch.float64)
    model = GPBO.using(fit=FitOptions(restarts=1)).learn([])
    several = len(domain.spread(64, generator).unique(dim=0)) > 3
    q, pending = (2, X[-1:]) if several else (1, None)
    return suggest(
        model.condition(Dataset(X[:-1], y[:-1], categories=domain.categories)),
        domain=domain,
        q=q,
        pending=pending,
        seed=seed,
        n_candidates=64,
    ).reshape(-1, domain.d)


def broken(domain: Ruled, X: torch.Tensor) -> list[tuple[dict[str, Any], str]]:
    """The rows with a rule that they break."""
    return [(row, str(rule)) for row in domain.space.decode(X) for rule in domain.rules if not rule.holds(row)]


def main() -> None:
    """Count what goes wrong, and stop at the time that was given."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spaces", type=int, default=10_000)
    parser.add_argument("--suggestions", type=int, default=300)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    began, points, failures, done, asked = time.monotonic(), 0, 0, 0, 0
    slowest = (0.0, 0)
    for seed in range(options.first, options.first + options.spaces):
        if time.monotonic() - began > options.seconds:
            break
        start = time.process_time()
        try:
            domain = random_domain(seed)
            found = offered(domain, seed)
            if seed - options.first < options.suggestions:
                found["suggest"], asked = suggested(domain, seed), asked + 1
        except Exception as error:
            failures += 1
            sys.stdout.write(f"seed {seed}: {type(error).__name__}: {error}\n")
            continue
        done += 1
        slowest = max(slowest, (time.process_time() - start, seed))
        for where, X in found.items():
            points += len(X)
            wrong = broken(domain, X)
            if wrong:
                failures += 1
                sys.stdout.write(f"seed {seed}, {where}: {len(wrong)} rows, such as {wrong[0]}\n")
    sys.stdout.write(f"slowest: {slowest[0]:.1f} s of CPU for seed {slowest[1]}\n")
    sys.stdout.write(f"{done} spaces, {asked} with suggestions, {points} points, {failures} failures\n")
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
