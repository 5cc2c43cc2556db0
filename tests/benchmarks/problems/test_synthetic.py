"""The paper's function families: formulas, parameters, true minima."""

from __future__ import annotations

import math
import pickle

import pytest
import torch
from tests.problems import generator, tensor

from benchmarks.problems.family import Family
from benchmarks.problems.synthetic import ALPINE, ALPINE_C, BRANIN, FAMILIES, FORRESTER, HARTMANN3, HARTMANN6
from benchmarks.problems.transfer import family
from headstart import InputError

# The classic functions of the literature
ORIGINAL = {
    "forrester": (1.0, 0.0, 0.0),
    "branin": (1.0, 5.1 / (4 * math.pi**2), 5 / math.pi, 6.0, 10.0, 1 / (8 * math.pi)),
    "hartmann3": (1.0, 1.2, 3.0, 3.2),
    "hartmann6": (1.0, 1.2, 3.0, 3.2),
}
EVERY = pytest.mark.parametrize("problem", FAMILIES.values(), ids=FAMILIES)


def _points(problem: Family, *shape: int, seed: int = 1) -> torch.Tensor:
    return torch.rand(*shape, problem.d, generator=generator(seed), dtype=torch.float64)


# ── true minima ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("problem", "known"),
    [(FORRESTER, -6.02074), (BRANIN, 0.397887), (HARTMANN3, -3.86278), (HARTMANN6, -3.32237)],
    ids=lambda value: getattr(value, "name", None),
)
def test_the_minimum_of_a_classic_function_is_the_published_one(problem: Family, known: float) -> None:
    """The original parameters give the function of the literature, with its known minimum."""
    assert problem.minimum(tensor(ORIGINAL[problem.name])).item() == pytest.approx(known, abs=6e-6)


@pytest.mark.parametrize(
    ("problem", "x"),
    [
        (BRANIN, (math.pi, 2.275)),
        (BRANIN, (-math.pi, 12.275)),
        (BRANIN, (3 * math.pi, 2.475)),
        (HARTMANN3, (0.114614, 0.555649, 0.852547)),
        (HARTMANN6, (0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573)),
        (FORRESTER, (0.757249,)),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_a_classic_function_is_lowest_where_the_literature_says(problem: Family, x: tuple[float, ...]) -> None:
    """Inputs in the unit cube are mapped to the function's own domain."""
    low, high = tensor(problem.bounds).unbind(-1)
    X = ((tensor(x) - low) / (high - low)).unsqueeze(0)
    original = tensor(ORIGINAL[problem.name])
    assert problem.evaluate(original, X).item() == pytest.approx(problem.minimum(original).item(), abs=2e-5)


@pytest.mark.parametrize("problem", [FORRESTER, ALPINE, ALPINE_C], ids=lambda problem: problem.name)
def test_a_fine_grid_finds_the_same_minimum_in_one_dimension(problem: Family) -> None:
    """200,001 grid points find nothing lower, and come within their own resolution."""
    grid = torch.linspace(0, 1, 200_001, dtype=torch.float64).unsqueeze(-1)
    params = problem.sample(6, generator())
    on_grid = torch.stack([problem.evaluate(p, grid).min() for p in params])
    gap = on_grid - problem.minimum(params)
    assert float(gap.min()) >= -1e-13
    assert float(gap.max()) < 1e-6


@pytest.mark.slow
@EVERY
def test_random_points_never_beat_the_minimum(problem: Family) -> None:
    """20,000 random points find nothing below the minimum of any of 50 random tasks."""
    X = _points(problem, 20_000)
    params = problem.sample(50, generator(2))
    lowest = torch.stack([problem.evaluate(p, X).min() for p in params])
    assert bool((problem.minimum(params) <= lowest).all())


def test_a_minimum_on_the_boundary_is_found() -> None:
    """With a steep slope the Forrester function is lowest at x = 0."""
    params = tensor([0.2, 15.0, 0.0])
    assert FORRESTER.minimum(params).item() == FORRESTER.evaluate(params, tensor([[0.0]])).item()


def test_a_minimum_is_searched_for_once() -> None:
    """A second call with the same parameters answers from memory, with the same number."""
    problem = Family(
        name="parabola",
        formula=lambda p, inputs: (inputs[0] - p[..., 0]) ** 2,
        bounds=((0.0, 1.0),),
        ranges=((0.2, 0.8),),
    )
    params = tensor([[0.3], [0.3], [0.7]])
    assert problem.minimum(params).tolist() == pytest.approx([0.0] * 3, abs=1e-15)
    assert set(problem._minima) == {(0.3,), (0.7,)}
    problem._minima[(0.3,)] = -1.0
    assert problem.minimum(tensor([0.3])).item() == -1.0


# ── formulas and batches ──────────────────────────────────────────────────────────────────────────────────────────


def test_branin_has_the_square_that_the_paper_lost() -> None:
    """a (…)² doubles with a and is never negative; without the square it would change sign."""
    params = tensor(
        [[0.0, 0.1, 1.0, 6.0, 10.0, 0.04], [1.0, 0.1, 1.0, 6.0, 10.0, 0.04], [2.0, 0.1, 1.0, 6.0, 10.0, 0.04]]
    )
    X = _points(BRANIN, 200)
    without, once, twice = (BRANIN.evaluate(p, X) for p in params)
    x1, x2 = -5 + 15 * X[:, 0], 15 * X[:, 1]
    inner = x2 - 0.1 * x1**2 + x1 - 6
    assert bool((inner < 0).any())
    torch.testing.assert_close(once - without, inner**2)
    torch.testing.assert_close(twice - without, 2 * inner**2)


def test_alpine_families_meet_in_the_original() -> None:
    """f(x; s = 0) of one Alpine family is f(x; c = 0.1) of the other."""
    X = _points(ALPINE, 50)
    torch.testing.assert_close(ALPINE.evaluate(tensor([0.0]), X), ALPINE_C.evaluate(tensor([0.1]), X))


def test_alpine_c_is_the_function_of_the_comparison_figure() -> None:
    """f(x; c) = x sin(x + π) + c x."""
    X = _points(ALPINE_C, 50)
    x = 20 * X[:, 0] - 10
    torch.testing.assert_close(ALPINE_C.evaluate(tensor([-0.5]), X), -x * torch.sin(x) - 0.5 * x)


@EVERY
def test_a_batch_of_tasks_equals_one_by_one(problem: Family) -> None:
    """Values and minima of a batch are those of its members, exactly."""
    params = problem.sample(6, generator(3)).reshape(2, 3, -1)
    X = _points(problem, 2, 3, 10)
    values, minima = problem.evaluate(params, X), problem.minimum(params)
    assert values.shape == (2, 3, 10)
    assert minima.shape == (2, 3)
    problem._minima.clear()
    for i in range(2):
        for j in range(3):
            assert torch.equal(problem.evaluate(params[i, j], X[i, j]), values[i, j])
            assert problem.minimum(params[i, j]).item() == pytest.approx(minima[i, j].item(), abs=1e-12)


@EVERY
def test_tasks_and_points_broadcast(problem: Family) -> None:
    """Many tasks can be evaluated at the same points."""
    params, X = problem.sample(3, generator()), _points(problem, 4)
    assert torch.equal(problem.evaluate(params, X), problem.evaluate(params, X.expand(3, -1, -1)))


@EVERY
def test_everything_is_float64_on_the_device_of_its_inputs(problem: Family) -> None:
    """The meta device stands for any accelerator: no constant stays behind on the CPU."""
    params, X = problem.sample(2, generator()), _points(problem, 2, 5)
    assert {params.dtype, problem.evaluate(params, X).dtype, problem.minimum(params).dtype} == {torch.float64}
    assert problem.evaluate(params.to("meta"), X.to("meta")).device.type == "meta"
    if torch.cuda.is_available():
        there = problem.evaluate(params.cuda(), X.cuda())
        torch.testing.assert_close(there.cpu(), problem.evaluate(params, X))
        assert problem.minimum(params.cuda()).is_cuda


@EVERY
def test_a_family_survives_pickling(problem: Family) -> None:
    """Other processes can be given a family."""
    params, X = problem.sample(1, generator()), _points(problem, 1, 5)
    assert torch.equal(pickle.loads(pickle.dumps(problem)).evaluate(params, X), problem.evaluate(params, X))


# ── parameters ────────────────────────────────────────────────────────────────────────────────────────────────────


@EVERY
def test_parameters_stay_in_the_papers_ranges_and_fill_them(problem: Family) -> None:
    """2000 draws lie inside the ranges, and come near both ends of each."""
    params = problem.sample(2000, generator())
    low, high = tensor(problem.ranges).unbind(-1)
    assert bool((params >= low).all())
    assert bool((params <= high).all())
    width = high - low
    slack = 0.25 if problem is ALPINE else 0.01  # the sources begin one step from the target
    assert bool((params.amin(0) - low <= slack * width).all())
    assert bool((high - params.amax(0) <= slack * width).all())


@pytest.mark.parametrize(
    ("problem", "ranges"),
    [
        (FORRESTER, ((0.2, 3), (-5, 15), (-5, 5))),
        (BRANIN, ((0.5, 1.5), (0.1, 0.15), (1, 2), (5, 7), (8, 12), (0.03, 0.05))),
        (HARTMANN3, ((1.0, 1.02), (1.18, 1.2), (2.8, 3.0), (3.2, 3.4))),
        (HARTMANN6, ((1.0, 1.02), (1.18, 1.2), (2.8, 3.0), (3.2, 3.4))),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_the_ranges_are_those_of_the_paper(problem: Family, ranges: tuple[tuple[float, float], ...]) -> None:
    """Appendix "Details on the synthetic function families"."""
    assert problem.ranges == ranges


def test_alpine_has_five_sources_and_one_target() -> None:
    """s = kπ/12 for k = 1 … 5 are the sources, each of which is drawn sometimes; s = 0 is always the target."""
    steps = ALPINE.sample(200, generator()).squeeze(-1) * 12 / math.pi
    assert sorted(set(steps.round().tolist())) == [1, 2, 3, 4, 5]
    torch.testing.assert_close(steps, steps.round())
    assert ALPINE.sample_target(3, generator()).tolist() == [[0.0]] * 3


@EVERY
def test_equal_generators_give_equal_tasks(problem: Family) -> None:
    """All randomness comes from the generator."""
    assert torch.equal(problem.sample(4, generator(7)), problem.sample(4, generator(7)))
    assert torch.equal(problem.sample_target(4, generator(7)), problem.sample_target(4, generator(7)))


# ── bad input ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_family_is_found_by_name() -> None:
    """In any case of letters."""
    assert family("Hartmann6") is HARTMANN6


def test_an_unknown_family_is_refused_with_the_known_ones() -> None:
    """The message lists every name."""
    with pytest.raises(InputError, match=r"'hartman'.*forrester, alpine, alpine_c, branin, hartmann3, hartmann6"):
        family("hartman")


def test_wrong_shapes_and_types_are_refused() -> None:
    """The message says what was expected and what came."""
    params, X = tensor(ORIGINAL["branin"]), _points(BRANIN, 3)
    with pytest.raises(InputError, match=r"6 parameters and float64 points of 2 columns.* of shape \(3, 1\)"):
        BRANIN.evaluate(params, X[:, :1])
    with pytest.raises(InputError, match=r"float64 points of 2 columns.*torch\.float32"):
        BRANIN.evaluate(params, X.float())
