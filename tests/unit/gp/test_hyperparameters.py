"""Named and bounded hyperparameters, and the flat vector of the optimiser."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest
import torch
from tests.problems import generator, tensor

from headstart import GPParams, InputError, Starts
from headstart.gp.hyperparameters import Inputs, Layout, Slot, gp_layout
from headstart.models.joint.coregion import Free, Hierarchical, SharedKernel, WeightedSource

LAYOUTS = {
    "task": gp_layout(Inputs.of(3), residual=False),
    "residual": gp_layout(Inputs.of(3), residual=True),
    **{type(c).__name__: Layout(c.slots(3)) for c in (Hierarchical(), WeightedSource(), SharedKernel(), Free())},
}


# ── one process ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_numbers_become_checked_tensors() -> None:
    """Numbers, lists and tensors become float64 tensors of one batch shape."""
    p = GPParams.of(lengthscale=[0.1, 0.2], outputscale=[1, 2, 3], noise_var=0, offset=tensor([[1.0], [2.0]]))
    assert p.lengthscale.shape == (2, 3, 2)
    assert p.outputscale.shape == p.noise_var.shape == p.offset.shape == (2, 3)
    assert {v.dtype for v in (p.lengthscale, p.outputscale, p.noise_var, p.offset)} == {torch.float64}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lengthscale": [0.1, 0.0]}, r"lengthscale of the task must be positive, but it is \[0.1, 0.0\]"),
        ({"lengthscale": [0.1, -1.0]}, "lengthscale of the task must be positive"),
        ({"lengthscale": [0.1, math.nan]}, "lengthscale of the task must be finite"),
        ({"lengthscale": 0.1}, "lengthscale needs one value per input"),
        ({"outputscale": 0.0}, "outputscale of the task must be positive, but it is 0.0"),
        ({"outputscale": math.inf}, "outputscale of the task must be finite, but it is inf"),
        ({"noise_var": -1e-9}, "noise_var of the task is a variance and must not be negative, but it is -1e-09"),
        ({"noise_var": [0.1, -0.1]}, "noise_var of the task .* must not be negative"),
        ({"noise_var": math.nan}, "noise_var of the task must be finite"),
        ({"offset": math.inf}, "offset of the task must be finite"),
        ({"outputscale": [1.0, 2.0], "noise_var": [0.1, 0.1, 0.1]}, "do not fit together"),
    ],
)
def test_hyperparameters_that_make_no_process_are_refused(change: dict[str, Any], message: str) -> None:
    """An ``InputError`` names the parameter and the value."""
    good: dict[str, Any] = {"lengthscale": [0.1, 0.2], "outputscale": 1.0, "noise_var": 0.1, "offset": 0.0}
    with pytest.raises(InputError, match=message):
        GPParams.of(**(good | change))


def test_a_scaled_process_is_the_process_of_scaled_outputs() -> None:
    """For outputs a·y + b variances grow by a², the offset moves along, lengthscales stay."""
    p = GPParams.of(lengthscale=[0.1], outputscale=2.0, noise_var=0.5, offset=3.0).scaled(tensor(10.0), tensor(7.0))
    assert (p.lengthscale.tolist(), p.outputscale.item(), p.noise_var.item()) == ([0.1], 200, 50)
    assert p.offset.item() == 37


def test_hyperparameters_are_frozen() -> None:
    """A value cannot be changed in place."""
    with pytest.raises(FrozenInstanceError):
        GPParams.of(lengthscale=[0.1], outputscale=1, noise_var=1).offset = tensor(1.0)  # type: ignore[misc]


# ── the flat vector ───────────────────────────────────────────────────────────────────────────────────────────────


def test_the_flat_vector_of_a_process_has_the_documented_bounds_and_medians() -> None:
    """θ = [log lengthscale, log outputscale, log noise_var] with the table in the module's docstring."""
    layout = gp_layout(Inputs.of(4), residual=False)
    assert [(slot.name, slot.size) for slot in layout.slots] == [
        ("lengthscale", 4),
        ("outputscale", 1),
        ("noise_var", 1),
    ]
    assert layout.size == 6
    lower, upper = (bound.exp() for bound in layout.bounds())
    assert torch.allclose(lower, tensor([0.05] * 4 + [0.01, 1e-6]))
    assert torch.allclose(upper, tensor([20.0] * 4 + [100.0, 1.0]))
    assert torch.allclose(layout.centre().exp(), tensor([0.3 * 2] * 4 + [1.0, 0.01]))
    assert torch.allclose(layout.precision(), tensor([1.0] * 5 + [1 / 4]))


def test_a_residual_is_expected_to_be_smaller() -> None:
    """On top of another task the outputscale's bounds reach lower and its median is 0.3."""
    slot = gp_layout(Inputs.of(2), residual=True).slots[1]
    assert (slot.name, slot.lower, slot.upper, slot.centre, slot.spread) == (
        "residual_outputscale",
        1e-4,
        100,
        0.3,
        1.5,
    )


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_the_median_lies_inside_the_bounds(layout: Layout) -> None:
    """The prior's median is an admissible point of every layout."""
    lower, upper = layout.bounds()
    assert bool(((lower < layout.centre()) & (layout.centre() < upper)).all())


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_named_values_are_the_flat_vector_cut_into_pieces(layout: Layout) -> None:
    """Each name has its own stretch of θ, as exp θ where it is positive and as θ elsewhere."""
    theta = torch.randn(2, 3, layout.size, generator=generator(), dtype=torch.float64)
    named = layout.named(theta)
    assert list(named) == [slot.name for slot in layout.slots]
    back = [named[slot.name].log() if slot.positive else named[slot.name] for slot in layout.slots]
    assert torch.allclose(torch.cat(back, dim=-1), theta, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("how", list(Starts))
def test_starts_lie_inside_the_bounds(layout: Layout, how: Starts) -> None:
    """Every starting point is admissible, and equal seeds give equal ones."""
    starts = layout.starts(how, 200, generator())
    lower, upper = layout.bounds()
    assert starts.shape == (200, layout.size)
    assert bool(((lower <= starts) & (starts <= upper)).all())
    assert torch.equal(starts, layout.starts(how, 200, generator()))
    assert not torch.equal(starts, layout.starts(how, 200, generator(1)))


def test_the_paper_starts_at_softplus_of_a_normal() -> None:
    """A positive parameter starts at log(1 + exp(normal)), inside its bounds; another at the normal itself."""
    layout = Layout((Slot("positive", 3, 1e-9, 1e9, 1.0, 1.0), Slot("any", 2, -9.0, 9.0, 0.0, 1.0, positive=False)))
    normal = torch.randn(50, 5, generator=generator(), dtype=torch.float64)
    named = layout.named(layout.starts(Starts.SOFTPLUS, 50, generator()))
    assert torch.allclose(named["positive"], torch.log(1 + torch.exp(normal[:, :3])), rtol=1e-12, atol=0)
    assert torch.equal(named["any"], normal[:, 3:])


def test_a_start_beyond_a_bound_begins_on_it() -> None:
    """The paper's starts of the noise exceed its upper bound 1 at times: they begin at 1."""
    starts = gp_layout(Inputs.of(1), residual=False).starts(Starts.SOFTPLUS, 100, generator())
    normal = torch.randn(100, 3, generator=generator(), dtype=torch.float64)
    expected = torch.log(1 + torch.exp(normal[:, 2])).clamp_max(1.0)
    assert bool((expected == 1).any())
    assert torch.allclose(starts[:, 2].exp(), expected, rtol=1e-12, atol=0)


def test_the_first_start_from_the_prior_is_its_median() -> None:
    """The first restart begins at the median, the others at draws from the prior."""
    layout = gp_layout(Inputs.of(2), residual=True)
    starts = layout.starts(Starts.PRIOR, 4000, generator())
    assert torch.equal(starts[0], layout.centre())
    away = (starts[1:] - layout.centre()) * layout.precision().sqrt()
    assert torch.allclose(away.median(0).values, torch.zeros(layout.size, dtype=torch.float64), atol=0.08)
    assert torch.allclose(away.abs().median(0).values, torch.full((layout.size,), 0.6745).double(), atol=0.06)


def test_what_makes_no_difference_is_pressed_together() -> None:
    """Lengthscales far beyond the cube and tiny noises are close by effect; all else stays a matter of factors."""
    layout = gp_layout(Inputs.of(2), residual=False)
    theta = np.log([[0.3, 10.0, 2.0, 0.5], [0.3, 20.0, 2.0, 0.5], [0.3, 20.0, 2.0, 1e-6], [0.3, 20.0, 2.0, 1e-4]])
    saturating = layout.saturating(theta)
    assert abs(saturating[1] - saturating[0]).max() < 0.02  # log 2 in θ
    assert abs(saturating[3] - saturating[2]).max() < 0.01  # log 100 in θ
    assert abs(saturating[2] - saturating[1]).max() > 3.0
    assert saturating[:, 2] == pytest.approx(theta[:, 2])
    assert saturating[0, 0] == pytest.approx(theta[0, 0], abs=0.01)
