"""The affine map between the user's output units and the model's."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest
import torch
from tests.problems import tensor
from torch import Tensor

from headstart import Dataset, Units
from headstart.data.units import spread_of


def _task(y: Tensor) -> Dataset:
    return Dataset(torch.zeros(*y.shape, 1, dtype=torch.float64), y)


def _values(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_one_task_is_standardised() -> None:
    """For one task the offset is its mean and the scale its standard deviation."""
    y = _values(9)
    units = Units.of([_task(y)])
    assert units.offset.item() == pytest.approx(y.mean().item())
    assert units.scale.item() == pytest.approx(y.std(correction=0).item())
    inward = units.inward(_task(y)).y
    assert inward.mean().item() == pytest.approx(0, abs=1e-15)
    assert inward.std(correction=0).item() == pytest.approx(1)


@pytest.mark.parametrize("a", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize("b", [0.0, 1.0, -3.0])
def test_model_units_do_not_depend_on_the_users(a: float, b: float) -> None:
    """y → a·y + a·b on all tasks leaves the values in model units alone."""
    tasks = [_task(_values(n, seed=n)) for n in (4, 7, 1)]
    changed = [_task(a * task.y + a * b) for task in tasks]
    units, other = Units.of(tasks), Units.of(changed)
    assert other.offset.item() == pytest.approx(a * units.offset.item() + a * b, rel=1e-12)
    assert other.scale.item() == pytest.approx(a * units.scale.item(), rel=1e-12)
    for task, moved in zip(tasks, changed, strict=True):
        assert torch.allclose(units.inward(task).y, other.inward(moved).y, rtol=1e-11, atol=1e-11)


def test_values_too_small_to_square_keep_their_spread() -> None:
    """The spread of values around 1e-200 is found although their squares vanish."""
    y = 1e-200 * _values(9)
    assert spread_of(y, y.mean(-1)).item() == pytest.approx(1e-200 * _values(9).std(correction=0).item())


def test_a_task_that_lies_higher_does_not_widen_the_scale() -> None:
    """The scale is the root mean square of the tasks' own spreads: where a task lies has no part in it."""
    low, high = _values(6), _values(6, seed=1)
    level, lifted = Units.of([_task(low), _task(high)]), Units.of([_task(low), _task(high + 1000)])
    assert lifted.scale.item() == pytest.approx(level.scale.item(), rel=1e-10)
    pooled = Units.pooled([_task(low), _task(high + 1000)])
    assert pooled.scale.item() == pytest.approx(torch.cat([low, high + 1000]).std(correction=0).item())


def test_tasks_count_by_their_size() -> None:
    """A large task weighs more in the scale than a small one: scale² = Σ n_i s_i² / Σ n_i."""
    small, large = _values(3), 5 * _values(12, seed=1)
    expected = (3 * small.var(correction=0) + 12 * large.var(correction=0)) / 15
    assert Units.of([_task(small), _task(large)]).scale.item() ** 2 == pytest.approx(expected.item())


@pytest.mark.parametrize("value", [0.0, 1.0, 0.1, -1e12, 1e-12])
def test_constant_values_have_no_scale(value: float) -> None:
    """The scale of constant values is 0, which means unknown; in model units they are 0."""
    task = _task(torch.full((7,), value, dtype=torch.float64))
    units = Units.of([task])
    assert units.scale.item() == 0
    assert units.inward(task).y.abs().max().item() <= 1e-15 * abs(value)


def test_rounding_is_no_spread() -> None:
    """Values that differ in their last digit only are constant."""
    y = 0.1 + torch.arange(4) * torch.finfo(torch.float64).eps * 0.1
    assert spread_of(y, y.mean(-1)).item() == 0


def test_constant_tasks_at_different_heights_take_the_spread_between_them() -> None:
    """Where every task is constant, how far they lie apart is the scale."""
    units = Units.of([_task(tensor([1.0, 1.0])), _task(tensor([3.0, 3.0]))])
    assert units.offset.item() == pytest.approx(2)
    assert units.scale.item() == pytest.approx(1)


def test_an_unknown_scale_is_completed_from_the_target() -> None:
    """Constant sources leave the scale to the target's spread, and to 1 while that is unknown; a known one stays."""
    unknown = Units.of([_task(tensor([5.0, 5.0]))])
    y = _values(4)
    assert unknown.completed(_task(y)).scale.item() == pytest.approx(y.std(correction=0).item())
    assert unknown.completed(_task(y)).offset.item() == 5
    assert unknown.completed(_task(y[:1])).scale.item() == 1
    assert unknown.completed(_task(y[:0])).scale.item() == 1
    known = Units.of([_task(y)])
    assert known.completed(_task(100 * y)) is known


def test_without_any_value_the_scale_is_unknown() -> None:
    """An empty task alone gives offset 0 and an unknown scale."""
    units = Units.of([Dataset.empty(2, batch_shape=(3,))])
    assert torch.equal(units.offset, torch.zeros(3, dtype=torch.float64))
    assert torch.equal(units.scale, torch.zeros(3, dtype=torch.float64))


def test_every_problem_of_a_batch_has_units_of_its_own() -> None:
    """In a batch each problem's units are those it has alone, constant ones among them."""
    y = torch.stack([_values(5), 100 + 7 * _values(5, seed=1), torch.full((5,), 3.0, dtype=torch.float64)])
    units = Units.of([_task(y), _task(y[:, :2])])
    for i in range(3):
        alone = Units.of([_task(y[i]), _task(y[i, :2])])
        assert torch.allclose(units.offset[i], alone.offset, rtol=1e-14, atol=0)
        assert torch.allclose(units.scale[i], alone.scale, rtol=1e-14, atol=0)
    assert torch.equal(units.completed(_task(y)).scale > 0, torch.ones(3, dtype=torch.bool))


def test_identity_changes_nothing() -> None:
    """In the user's own units offset is 0 and scale 1."""
    task = _task(_values(2, 3))
    assert torch.equal(Units.identity(task).inward(task).y, task.y)


def test_the_name_of_a_task_survives_the_change_of_units() -> None:
    """A task in model units is still called what the user called it."""
    task = Dataset([[0.0], [1.0]], [1.0, 2.0], "mine")
    assert Units.of([task]).inward(task).name == "mine"


def test_units_are_frozen() -> None:
    """Offset and scale cannot be set again."""
    with pytest.raises(FrozenInstanceError):
        Units.of([_task(_values(3))]).scale = tensor(2.0)  # type: ignore[misc]


def test_known_variances_are_divided_by_the_square_of_the_scale() -> None:
    """And shifted by nothing; a variance beyond all numbers is the largest one."""
    task = Dataset(tensor([[0.1], [0.2]]), tensor([3.0, 5.0]), error_var=tensor([0.5, 8.0]))
    inward = Units(tensor(3.0), tensor(4.0)).inward(task)
    assert inward.y.tolist() == [0.0, 0.5]
    assert inward.error_var is not None
    assert inward.error_var.tolist() == [0.5 / 16, 0.5]
    small = Units(tensor(3.0), tensor(1e-180)).inward(task).error_var
    assert small is not None
    assert small.tolist() == [1e300, 1e300]
