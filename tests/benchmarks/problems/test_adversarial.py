"""Sources that mislead: what is done to them, and what is left alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch

from benchmarks.methods.method import Choice, Settings
from benchmarks.methods.registry import method
from benchmarks.problems.adversarial import Scenario, SpoiltProblem
from benchmarks.problems.problem import Instance
from benchmarks.problems.table import TableProblem, TaskTable
from benchmarks.problems.transfer import SyntheticProblem
from headstart import Dataset, InputError
from headstart.data.ranges import Choices, FloatRange
from headstart.data.space import Space

SEEDS = (0, 3)
PLAIN = SyntheticProblem("hartmann3", n_sources=2, source_points=12, noise=0.1)
EVERY = pytest.mark.parametrize("scenario", Scenario)


def table_problem() -> TableProblem:
    """Two numeric inputs around a categorical one of three levels."""
    generator = torch.Generator().manual_seed(0)
    tasks = {}
    for t in "abcd":
        numbers = torch.rand(15, 2, generator=generator, dtype=torch.float64)
        level = torch.nn.functional.one_hot(torch.arange(15) % 3, 3) / 2**0.5
        X = torch.cat([numbers[:, :1], level, numbers[:, 1:]], dim=1)
        tasks[t] = Dataset(X, numbers.sum(-1) + (torch.arange(15) % 3), t)
    space = Space.of({"p": FloatRange(0.0, 1.0), "kind": Choices(("x", "y", "z")), "q": FloatRange(0.0, 1.0)})
    return TableProblem(TaskTable("shop", space, tasks), n_sources=2, rows=10)


def drawn(scenario: Scenario, seeds: tuple[int, ...] = SEEDS, problem: SyntheticProblem = PLAIN) -> Instance:
    return SpoiltProblem(problem, scenario).draw(seeds, 5)


CLEAN = PLAIN.draw(SEEDS, 5)


# ── what stays ────────────────────────────────────────────────────────────────────────────────────────────────────


@EVERY
def test_only_the_sources_are_spoilt(scenario: Scenario) -> None:
    """The target, its noise, its minimum and its label are those of the unspoilt problem, seed by seed."""
    spoilt = drawn(scenario)
    X = torch.rand(2, 4, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert spoilt.function is not None
    assert CLEAN.function is not None
    assert torch.equal(spoilt.function(X), CLEAN.function(X))
    for a, b in zip(
        (spoilt.noise, spoilt.minimum, spoilt.scale), (CLEAN.noise, CLEAN.minimum, CLEAN.scale), strict=True
    ):
        assert torch.equal(a, b)
    assert spoilt.labels == CLEAN.labels
    assert torch.equal(PLAIN.draw(SEEDS, 5).sources[0].y, CLEAN.sources[0].y)


@EVERY
def test_a_spoilt_problem_is_the_same_alone(scenario: Scenario) -> None:
    """A seed has the sources it has in a batch, drawn again or not, inside the unit cube."""
    together, alone = drawn(scenario), drawn(scenario, (3,))
    for a, b in zip(together.sources, alone.sources, strict=True):
        assert torch.equal(a.X[1:], b.X)
        assert torch.equal(a.y[1:], b.y)
        assert bool(((a.X >= 0) & (a.X <= 1)).all())


@EVERY
def test_the_name_says_what_was_done(scenario: Scenario) -> None:
    """Cells of different scenarios have different names; up to the bracket it is the name of the unspoilt problem."""
    spoilt = SpoiltProblem(PLAIN, scenario)
    assert spoilt.name == f"hartmann3[{scenario},sources=2,points=12,noise=0.1]"
    assert spoilt.name.partition("[")[0] == PLAIN.name.partition("[")[0]
    assert spoilt.d == 3


class _Blind(SyntheticProblem):
    """Its sources have not recorded the given inputs, those of the last source apart."""

    def __init__(self, unseen: tuple[int, ...], last: tuple[int, ...]) -> None:
        super().__init__("hartmann3", n_sources=2, source_points=12, noise=0.1)
        self.unseen, self.last = unseen, last

    def draw(self, seeds: Sequence[int], steps: int) -> Instance:
        instance = super().draw(seeds, steps)
        columns = (*[self.unseen] * (len(instance.sources) - 1), self.last)
        blind = (Dataset(s.X, s.y, s.name, unseen) for s, unseen in zip(instance.sources, columns, strict=True))
        return replace(instance, sources=tuple(blind))


@EVERY
def test_what_a_source_has_not_recorded_stays_unrecorded(scenario: Scenario) -> None:
    """Whatever is done to its values, and wherever it stands in the order."""
    sources = SpoiltProblem(_Blind((1,), (1,)), scenario).draw(SEEDS, 5).sources
    assert {source.unseen for source in sources} == {(1,)}


def test_only_recorded_inputs_are_exchanged() -> None:
    """With two of three recorded it is those; with one there is nothing to exchange."""
    clean, spoilt = (p.draw(SEEDS, 5).sources[-1] for p in (PLAIN, SpoiltProblem(_Blind((), (0,)), Scenario.SWAPPED)))
    assert torch.equal(spoilt.X, clean.X[..., [0, 2, 1]])
    with pytest.raises(InputError, match="fewer than two numeric inputs"):
        SpoiltProblem(_Blind((), (0, 1)), Scenario.SWAPPED).draw(SEEDS, 5)


def test_sources_that_have_not_recorded_the_same_cannot_change_places() -> None:
    """A batch has one list of unseen columns, and every seed its own order."""
    with pytest.raises(InputError, match="must have recorded the same inputs"):
        SpoiltProblem(_Blind((), (0,)), Scenario.NINE_BAD).draw(SEEDS, 5)


def test_a_spoilt_table_is_told_apart_like_the_table() -> None:
    """Its fingerprint is that of the data, and its candidates are the target's."""
    problem = table_problem()
    spoilt = SpoiltProblem(problem, Scenario.NEGATED)
    assert spoilt.fingerprint == problem.fingerprint is not None
    a, b = spoilt.draw(SEEDS, 5).candidates, problem.draw(SEEDS, 5).candidates
    assert a is not None
    assert b is not None
    assert torch.equal(a.X, b.X)
    assert torch.equal(a.values, b.values)


# ── what is done ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_related_sources_are_as_they_are() -> None:
    """Nothing is done to them."""
    for a, b in zip(drawn(Scenario.RELATED).sources, CLEAN.sources, strict=True):
        assert torch.equal(a.X, b.X)
        assert torch.equal(a.y, b.y)


def test_scaled_and_negated_sources_are_maps_of_their_values() -> None:
    """5 y + 100 and −y, at the same inputs."""
    for scenario, factor, shift in ((Scenario.SCALED, 5.0, 100.0), (Scenario.NEGATED, -1.0, 0.0)):
        for a, b in zip(drawn(scenario).sources, CLEAN.sources, strict=True):
            assert torch.equal(a.X, b.X)
            torch.testing.assert_close(a.y, factor * b.y + shift)


def test_noise_has_the_mean_and_spread_of_the_source_and_nothing_else() -> None:
    """Over many points mean and spread agree; source by source and seed by seed it is other noise."""
    problem = SyntheticProblem("hartmann3", n_sources=2, source_points=2000, noise=0.0)
    spoilt, clean = drawn(Scenario.NOISE, problem=problem).sources, problem.draw(SEEDS, 5).sources
    for a, b in zip(spoilt, clean, strict=True):
        assert torch.equal(a.X, b.X)
        torch.testing.assert_close(a.y.mean(-1), b.y.mean(-1), rtol=0, atol=0.1)
        torch.testing.assert_close(a.y.std(-1), b.y.std(-1), rtol=0.1, atol=0)
    draws = torch.cat([*((a.y - a.y.mean(-1, keepdim=True)) for a in spoilt), *(b.y for b in clean)])
    correlation = torch.corrcoef(draws)[:4]
    assert float(correlation.fill_diagonal_(0).abs().max()) < 0.1


def test_a_constant_source_is_its_mean_everywhere() -> None:
    """At the same inputs."""
    for a, b in zip(drawn(Scenario.CONSTANT).sources, CLEAN.sources, strict=True):
        assert torch.equal(a.X, b.X)
        torch.testing.assert_close(a.y, b.y.mean(-1, keepdim=True).expand_as(b.y))


def test_shifted_inputs_go_round_the_corner() -> None:
    """x + 1/3, less 1 where that is outside; values stay. Categories move on by a third of their number."""
    for a, b in zip(drawn(Scenario.SHIFTED).sources, CLEAN.sources, strict=True):
        torch.testing.assert_close(a.X, (b.X + 1 / 3) % 1)
        assert torch.equal(a.y, b.y)
    problem = table_problem()
    spoilt, clean = SpoiltProblem(problem, Scenario.SHIFTED).draw(SEEDS, 5), problem.draw(SEEDS, 5)
    for a, b in zip(spoilt.sources, clean.sources, strict=True):
        torch.testing.assert_close(a.X[..., [0, 4]], (b.X[..., [0, 4]] + 1 / 3) % 1)
        assert torch.equal(a.X[..., 1:4], b.X[..., [3, 1, 2]])
        assert torch.equal(a.y, b.y)


def test_two_inputs_of_the_last_source_are_exchanged() -> None:
    """The first and the last numeric one; the other sources stay as they are."""
    spoilt = drawn(Scenario.SWAPPED).sources
    assert torch.equal(spoilt[0].X, CLEAN.sources[0].X)
    assert torch.equal(spoilt[1].X, CLEAN.sources[1].X[..., [2, 1, 0]])
    assert all(torch.equal(a.y, b.y) for a, b in zip(spoilt, CLEAN.sources, strict=True))
    problem = table_problem()
    last = SpoiltProblem(problem, Scenario.SWAPPED).draw(SEEDS, 5).sources[-1]
    assert torch.equal(last.X, problem.draw(SEEDS, 5).sources[-1].X[..., [4, 1, 2, 3, 0]])


def test_one_input_cannot_be_swapped() -> None:
    """A problem of one dimension is refused, with its name."""
    with pytest.raises(InputError, match=r"forrester\[.*fewer than two numeric inputs"):
        SpoiltProblem(SyntheticProblem("forrester"), Scenario.SWAPPED)


@pytest.mark.parametrize("n_sources", [1, 2, 12])
def test_one_good_source_is_hidden_among_nine_bad_ones(n_sources: int) -> None:
    """Of ten sources one is the first of the problem; three are negated, three noise and three constant.

    The bad ones are made from other sources where there are any.
    """
    problem = SyntheticProblem("hartmann3", n_sources=n_sources, source_points=12, noise=0.0)
    seeds = tuple(range(6))
    spoilt, clean = drawn(Scenario.NINE_BAD, seeds, problem).sources, problem.draw(seeds, 5).sources
    assert len(spoilt) == 10
    places = []
    for p in range(len(seeds)):
        kinds = []
        for a in spoilt:
            same = [b for b in clean if torch.equal(a.X[p], b.X[p])]
            assert len(same) == 1
            assert (same[0] is clean[0]) == torch.equal(a.y[p], clean[0].y[p]) or n_sources == 1
            y = same[0].y[p]
            if torch.equal(a.y[p], y):
                assert same[0] is clean[0]
                kinds.append("good")
            elif torch.equal(a.y[p], -y):
                kinds.append("negated")
            else:
                kinds.append("constant" if float(a.y[p].std()) < 1e-12 else "noise")
        assert sorted(kinds) == ["constant"] * 3 + ["good"] + ["negated"] * 3 + ["noise"] * 3
        places.append(kinds.index("good"))
    assert len(set(places)) > 2


# ── AUTO among them ───────────────────────────────────────────────────────────────────────────────────────────────


def choice(name: str, instance: Instance, problem: str, seeds: tuple[int, ...], target: Dataset) -> Choice:
    """One point per seed; on a table every row is free."""
    settings = Settings(paper=False, acquisition="log_ei", restarts=1)
    allowed = None if instance.candidates is None else instance.candidates.real
    return method(name).begin(instance, problem, seeds, settings).propose(target, allowed)


@pytest.mark.parametrize("scenario", [Scenario.CONSTANT, Scenario.RELATED])
def test_where_nothing_is_known_auto_begins_with_the_best_of_the_first_source(scenario: Scenario) -> None:
    """With no source let in the first point is that one, or of a table the nearest row; with good sources it is not."""
    for instance, d in ((drawn(scenario), 3), (SpoiltProblem(table_problem(), scenario).draw(SEEDS, 5), 5)):
        nothing = Dataset.empty(d, batch_shape=torch.Size([2]))
        ours, first = choice("auto", instance, "p", SEEDS, nothing), instance.sources[0]
        best = torch.stack([X[y.argmin()] for X, y in zip(first.X, first.y, strict=True)])
        if instance.candidates is None:
            assert torch.equal(ours.x, best) == (scenario is Scenario.CONSTANT)
        else:
            assert ours.row is not None
            row = torch.cdist(best.unsqueeze(-2), instance.candidates.X).squeeze(-2).argmin(-1)
            assert torch.equal(ours.row, row) == (scenario is Scenario.CONSTANT)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["auto"])
def test_seeds_in_a_batch_choose_what_they_choose_alone(name: str) -> None:
    """On a table the row of every seed is the one it gets alone, whichever candidates the others ask."""
    problem, seeds = table_problem(), (0, 1, 2)

    def rows(some: tuple[int, ...]) -> list[int]:
        instance = problem.draw(some, 5)
        assert instance.candidates is not None
        target = Dataset(instance.candidates.X[:, :3], instance.candidates.values[:, :3])
        row = choice(name, instance, "p", some, target).row
        assert row is not None
        return row.tolist()

    assert rows(seeds) == [rows((seed,))[0] for seed in seeds]
