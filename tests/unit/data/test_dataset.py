"""What a data set accepts, and how it refuses."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace
from typing import Any

import numpy as np
import pytest
import torch
from tests.problems import tensor

from headstart import Dataset, InputError
from headstart.data.dataset import error_vars, require_compatible, require_unit_cube

X = tensor([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]])
y = tensor([1.0, 2.0, 3.0])


def _with(values: torch.Tensor, index: tuple[int, ...], value: float) -> torch.Tensor:
    changed = values.clone()
    changed[index] = value
    return changed


# ── what goes in ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("convert", [torch.Tensor.tolist, torch.Tensor.numpy, torch.Tensor.clone])
def test_lists_arrays_and_tensors_are_the_same_data(convert: Any) -> None:
    """A data set of lists or NumPy arrays equals that of tensors, and is float64."""
    data = Dataset(convert(X), convert(y), "run 7")
    assert data.X.dtype == data.y.dtype == torch.float64
    assert torch.equal(data.X, X)
    assert torch.equal(data.y, y)
    assert (data.n, data.d, data.batch_shape, data.name) == (3, 2, (), "run 7")


def test_whole_numbers_in_lists_become_floats() -> None:
    """Integers in lists and arrays are numbers like others."""
    data = Dataset([[0, 1], [1, 0]], np.array([3, 4]))
    assert torch.equal(data.X, tensor([[0.0, 1.0], [1.0, 0.0]]))
    assert torch.equal(data.y, tensor([3.0, 4.0]))


def test_leading_dimensions_are_problems() -> None:
    """X (*b, n, d) and y (*b, n) are a batch of problems of equal shape."""
    data = Dataset(X.expand(4, 5, 3, 2), y.expand(4, 5, 3))
    assert (data.n, data.d, data.batch_shape) == (3, 2, (4, 5))


def test_an_empty_data_set_knows_its_inputs() -> None:
    """Without observations the number of inputs and the batch shape are still there."""
    data = Dataset.empty(3, batch_shape=(2,), name="new")
    assert (data.n, data.d, data.batch_shape, data.name) == (0, 3, (2,), "new")
    assert data.y.shape == (2, 0)


def test_a_data_set_does_not_follow_gradients() -> None:
    """Tensors that require gradients enter as plain numbers."""
    data = Dataset(X.clone().requires_grad_(), y)
    assert not data.X.requires_grad


def test_an_array_is_copied() -> None:
    """Changing the array afterwards does not change the data set."""
    values = y.numpy().copy()
    data = Dataset(X, values)
    values[0] = 99.0
    assert torch.equal(data.y, y)


def test_a_data_set_is_frozen() -> None:
    """Its fields cannot be set again."""
    with pytest.raises(FrozenInstanceError):
        Dataset(X, y).y = y  # type: ignore[misc]


def test_with_point_adds_one_observation_and_leaves_the_old_data_alone() -> None:
    """``with_point`` returns a longer data set of the same name."""
    data = Dataset(X, y, "mine")
    longer = data.with_point([0.7, 0.8], 4.0)
    assert data.n == 3
    assert torch.equal(longer.X, torch.cat([X, tensor([[0.7, 0.8]])]))
    assert torch.equal(longer.y, tensor([1.0, 2.0, 3.0, 4.0]))
    assert longer.name == "mine"


def test_with_point_adds_one_observation_to_every_problem() -> None:
    """In a batch every problem gets its own point."""
    data = Dataset(X.expand(2, 3, 2), y.expand(2, 3)).with_point(tensor([[0.7, 0.8], [0.9, 1.0]]), [4.0, 5.0])
    assert torch.equal(data.X[:, -1], tensor([[0.7, 0.8], [0.9, 1.0]]))
    assert torch.equal(data.y[:, -1], tensor([4.0, 5.0]))


# ── what does not ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("bad_X", "bad_y", "message"),
    [
        pytest.param(X[:, 0], y, r"X of data set 'run 7' must have shape \(n, d\).*shape \(3,\).*reshape", id="1-D X"),
        pytest.param(
            X, y[:, None], r"y of data set 'run 7' must have .* shape \(3,\).*\(3, 1\).*squeeze", id="y column"
        ),
        pytest.param(X, y[:2], r"y of data set 'run 7'.*one value per row of X, shape \(3,\).*\(2,\)", id="length"),
        pytest.param(X, y.expand(2, 3), r"y of data set 'run 7'.*shape \(3,\).*\(2, 3\)", id="batch of y only"),
        pytest.param(X, y[0], r"y of data set 'run 7'.*shape \(3,\), but it has shape \(\)", id="scalar y"),
        pytest.param(X.float(), y, r"X of data set 'run 7' must be float64.*float32.*\.double\(\)", id="float32 X"),
        pytest.param(X, y.float(), r"y of data set 'run 7' must be float64.*float32", id="float32 y"),
        pytest.param(X.long(), y, r"X of data set 'run 7' must be float64.*int64", id="integer tensor"),
        pytest.param(X.numpy().astype(np.float32), y, r"X of data set 'run 7'.*float64.*float32", id="float32 array"),
        pytest.param([["a", "b"]] * 3, y, r"X of data set 'run 7' must be numbers.*type is <U1", id="strings"),
        pytest.param(X, ["1", "2", "3"], r"y of data set 'run 7' must be numbers", id="strings in y"),
        pytest.param(X, [1.0, None, 3.0], r"y of data set 'run 7' must be numbers", id="None in y"),
        pytest.param(X, [True, False, True], r"y of data set 'run 7' must be numbers.*bool", id="bools"),
        pytest.param(X, [1j, 2j, 3j], r"y of data set 'run 7' must be numbers.*complex", id="complex"),
        pytest.param([[0.1, 0.2], [0.3], [0.4, 0.5]], y, r"X of data set 'run 7'.*rows differ in length", id="ragged"),
        pytest.param(X, y.to("meta"), r"X and y of data set 'run 7'.*one device.*cpu.*meta", id="another device"),
    ],
)
def test_data_that_do_not_fit_are_refused(bad_X: Any, bad_y: Any, message: str) -> None:
    """Shapes, types and devices that do not fit are an ``InputError`` that names the data set and the argument."""
    with pytest.raises(InputError, match=message):
        Dataset(bad_X, bad_y, "run 7")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_value_of_X_that_is_not_finite_is_named(value: float) -> None:
    """The message names the data set, the row, the column and the value."""
    with pytest.raises(InputError, match=rf"X of data set 'run 7' must be finite, but row 2, column 1 is {value}"):
        Dataset(_with(X, (2, 1), value), y, "run 7")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_value_of_y_that_is_not_finite_is_named(value: float) -> None:
    """The message names the data set, the row and the value."""
    with pytest.raises(InputError, match=rf"y of data set 'run 7' must be finite, but row 1 is {value}"):
        Dataset(X, _with(y, (1,), value), "run 7")


def test_a_value_that_is_not_finite_is_named_in_lists_too() -> None:
    """NaN in a list is found as it is in a tensor, also without a name."""
    with pytest.raises(InputError, match="y of the data set must be finite, but row 0 is nan"):
        Dataset(X.tolist(), [float("nan"), 1.0, 2.0])


def test_the_problem_of_a_value_that_is_not_finite_is_named() -> None:
    """In a batch the message also says which problem it was, and counts all such values."""
    many_X, many_y = X.expand(2, 4, 3, 2), y.expand(2, 4, 3)
    with pytest.raises(InputError, match=r"row 0, column 1 of problem \(1, 2\) is nan \(1 such values\)"):
        Dataset(_with(many_X, (1, 2, 0, 1), float("nan")), many_y)
    with pytest.raises(InputError, match=r"row 1 of problem \(0, 3\) is inf \(2 such values\)"):
        Dataset(many_X, _with(_with(many_y, (0, 3, 1), float("inf")), (1, 0, 2), float("nan")))


def test_data_without_values_are_refused() -> None:
    """A tensor of a device that holds no values cannot be a data set."""
    with pytest.raises(InputError, match="meta"):
        Dataset(X.to("meta"), y.to("meta"))


@pytest.mark.parametrize(
    ("x", "value", "message"),
    [
        pytest.param([0.7], 4.0, "x|X|shape", id="too few inputs"),
        pytest.param([0.7, 0.8], [4.0, 5.0], "y|shape", id="two values"),
        pytest.param([0.7, 0.8], float("nan"), "y of data set 'run 7' must be finite, but row 3 is nan", id="NaN"),
    ],
)
def test_a_point_that_does_not_fit_is_refused(x: Any, value: Any, message: str) -> None:
    """A point with another number of inputs, several values or NaN is an ``InputError``."""
    with pytest.raises(InputError, match=message):
        Dataset(X, y, "run 7").with_point(x, value)


# ── several tasks ─────────────────────────────────────────────────────────────────────────────────────────────────


def _on_meta() -> Dataset:
    """Data on another device, as far as a machine with one device can show it."""
    data = Dataset(X, y)
    object.__setattr__(data, "X", X.to("meta"))
    object.__setattr__(data, "y", y.to("meta"))
    return data


@pytest.mark.parametrize(
    ("other", "message"),
    [
        pytest.param(Dataset(X[:, :1], y), r"same number of inputs, but source 0 \('old'\) has 2 and {} has 1", id="d"),
        pytest.param(
            Dataset(X.expand(4, 3, 2), y.expand(4, 3)),
            r"same batch shape, but source 0 \('old'\) has \(\) and {} has \(4,\)",
            id="batch",
        ),
        pytest.param(_on_meta(), r"same device, but source 0 \('old'\) has cpu and {} has meta", id="device"),
    ],
)
@pytest.mark.parametrize("as_target", [True, False])
def test_tasks_that_do_not_fit_together_are_refused(other: Dataset, message: str, as_target: bool) -> None:
    """Tasks with other inputs, another batch shape or another device than the first are named."""
    old = Dataset(X, y, "old")
    sources, target = ([old], other) if as_target else ([old, other], None)
    with pytest.raises(InputError, match=message.format("the target" if as_target else "source 1")):
        require_compatible(sources, target)


def test_an_empty_source_is_refused_and_an_empty_target_is_not() -> None:
    """A source without observations teaches nothing: it is named. A target without any is the zero-shot case."""
    require_compatible([Dataset(X, y)], Dataset.empty(2))
    with pytest.raises(InputError, match=r"source 1 \('blank'\) has no observations"):
        require_compatible([Dataset(X, y), Dataset.empty(2, name="blank")], None)


@pytest.mark.parametrize("wrong", [(X, y), X, None, "data"], ids=["pair", "tensor", "None", "str"])
def test_only_data_sets_are_tasks(wrong: Any) -> None:
    """A source or target that is no ``Dataset`` is refused by its type."""
    with pytest.raises(InputError, match=rf"source 0 must be a headstart.Dataset, but it is a {type(wrong).__name__}"):
        require_compatible([wrong], None)


def test_a_target_that_is_no_data_set_is_refused() -> None:
    """The target is named, and its type."""
    with pytest.raises(InputError, match=r"the target must be a headstart\.Dataset, but it is a tuple"):
        require_compatible([Dataset(X, y)], (X, y))  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [-0.01, 1.01])
def test_an_input_outside_the_unit_cube_is_named(value: float) -> None:
    """The message names the task, the first such row and column, the value, and how many rows there are."""
    outside = Dataset(_with(_with(X, (1, 0), value), (2, 1), 7.0), y)
    with pytest.raises(
        InputError, match=rf"X of source 3 .*row 1, column 0 is {value:g} \(2 such values\).*unit_cube=False"
    ):
        require_unit_cube(outside, "source 3")


def test_the_edges_of_the_unit_cube_belong_to_it() -> None:
    """0 and 1 are inside, and so is what rounding makes of them."""
    require_unit_cube(Dataset([[0.0, 1.0], [-1e-12, 1 + 1e-12]], [1.0, 2.0]), "the target")


# ── known errors ──────────────────────────────────────────────────────────────────────────────────────────────────────

THREE = Dataset([[0.1], [0.5], [0.9]], [1.0, 2.0, 3.0], "a", categories=[(0,)], error_var=[0.1, 0.0, 10.0])


def test_errors_go_where_their_rows_go() -> None:
    """Heads and rows have their own; a list becomes a tensor; None stays None."""
    assert THREE.head(2).error_var.tolist() == [0.1, 0.0]  # type: ignore[union-attr]
    some = THREE.rows(torch.tensor([2, 0]))
    assert (some.y.tolist(), some.error_var.tolist()) == ([3.0, 1.0], [10.0, 0.1])  # type: ignore[union-attr]
    assert (some.name, some.categories) == ("a", ((0,),))
    assert THREE.rows(slice(0, None, 2)).error_var.tolist() == [0.1, 10.0]  # type: ignore[union-attr]
    assert Dataset([[0.1]], [1.0]).rows(slice(1)).error_var is None
    assert Dataset.empty(2).error_var is None


def test_a_point_comes_with_its_error_or_without_one() -> None:
    """Without one it has 0, next to others that have; the first error makes those before it 0."""
    assert THREE.with_point([0.3], 5.0, 0.2).error_var.tolist() == [0.1, 0.0, 10.0, 0.2]  # type: ignore[union-attr]
    assert THREE.with_point([0.3], 5.0).error_var.tolist() == [0.1, 0.0, 10.0, 0.0]  # type: ignore[union-attr]
    none = Dataset([[0.1]], [1.0])
    assert none.with_point([0.3], 5.0).error_var is None
    assert none.with_point([0.3], 5.0, 0.2).error_var.tolist() == [0.0, 0.2]  # type: ignore[union-attr]
    batch = Dataset.empty(1, batch_shape=(2,)).with_point([[0.1], [0.2]], [1.0, 2.0], [0.5, 0.6])
    assert batch.error_var.tolist() == [[0.5], [0.6]]  # type: ignore[union-attr]


def test_errors_are_not_lost_on_the_way_to_other_data() -> None:
    """New data of a task whose errors are known need theirs."""
    with pytest.raises(InputError, match="give error_var"):
        THREE.with_data(THREE.X, THREE.y)
    assert THREE.with_data(THREE.X, THREE.y, THREE.y).error_var.tolist() == [1.0, 2.0, 3.0]  # type: ignore[union-attr]


def test_the_errors_of_several_tasks_are_one_after_the_other() -> None:
    """A task without any has 0 next to one that has; no task with any is None."""
    none = Dataset([[0.1]], [1.0])
    assert error_vars([none, none]) is None
    assert error_vars([]) is None
    assert error_vars([none, THREE]).tolist() == [0.0, 0.1, 0.0, 10.0]  # type: ignore[union-attr]


@pytest.mark.parametrize("value", [-1e-9, float("nan"), float("inf")])
def test_an_error_that_is_no_variance_is_named(value: float) -> None:
    """The message has the row, the value, and what is expected."""
    with pytest.raises(InputError, match=rf"error_var of data set 'a' .*row 1 is {value}.*square of a standard error"):
        Dataset([[0.1], [0.2]], [1.0, 2.0], "a", error_var=[0.1, value])
    with pytest.raises(InputError, match=r"row 0 of problem \(1,\)"):
        Dataset([[[0.1]], [[0.2]]], [[1.0], [2.0]], error_var=[[0.1], [value]])


@pytest.mark.parametrize("error_var", [0.1, [0.1], [[0.1, 0.2]], [0.1, 0.2, 0.3]])
def test_errors_of_another_shape_are_refused(error_var: Any) -> None:
    """One variance per result, no more and no fewer."""
    with pytest.raises(InputError, match=r"one variance per result, shape \(2,\)"):
        Dataset([[0.1], [0.2]], [1.0, 2.0], error_var=error_var)


def test_errors_are_float64() -> None:
    """As X and y are."""
    with pytest.raises(InputError, match="error_var of the data set must be float64"):
        Dataset([[0.1]], [1.0], error_var=torch.tensor([0.1]))


# ── batches ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_batch_of_the_last_row_is_the_present_one() -> None:
    """Unless another one is named, which need not have a row; of every problem its own."""
    task = Dataset(X, y, batch=[4, 4, 9])
    assert task.present is not None
    assert task.present.item() == 9.0
    assert task.batch is not None
    assert task.batch.dtype == torch.float64
    named = Dataset(X, y, batch=np.array([4, 4, 9]), present=5)
    assert named.present is not None
    assert named.present.item() == 5.0
    many = Dataset(X.expand(2, 3, 2), y.expand(2, 3), batch=torch.tensor([[1, 1, 2], [7, 8, 8]]))
    assert many.present is not None
    assert many.present.tolist() == [2.0, 8.0]
    assert Dataset(X, y).present is None
    assert Dataset(X[:0], y[:0], batch=[]).n == 0


def test_rows_keep_their_batches() -> None:
    """Some of the rows keep the present batch; the first ones are as they were then, when that of the last was it."""
    task = Dataset(X, y, batch=[4, 6, 9])
    first, some, all_ = task.head(2), task.rows(torch.tensor([1, 0])), task.head(3)
    for found, batch, present in ((first, [4, 6], 6), (some, [6, 4], 9), (all_, [4, 6, 9], 9)):
        assert found.batch is not None
        assert found.present is not None
        assert (found.batch.tolist(), found.present.item()) == (batch, present)
    later = Dataset(X, y, batch=[4, 6, 9], present=1).head(5).present
    assert later is not None
    assert later.item() == 1.0
    with pytest.raises(InputError, match="give batch of the new ones"):
        task.with_data(X[:1], y[:1])
    assert task.repeated(4).batch_shape == (4,)
    assert task.repeated(4).batch.shape == (4, 3)  # type: ignore[union-attr]


def test_a_point_is_of_the_present_batch_or_begins_another() -> None:
    """What is added without a batch is of the present one; with one it makes that the present one."""
    task = Dataset(X, y, batch=[4, 4, 9], present=5)
    for batch, expected in ((None, 5.0), (7, 7.0)):
        more = task.with_point([0.5, 0.5], 1.0, batch=batch)
        assert more.batch is not None
        assert more.present is not None
        assert (more.batch[-1].item(), more.present.item()) == (expected, expected)
    with pytest.raises(InputError, match="name the batch of all of them, or of none"):
        Dataset(X, y).with_point([0.5, 0.5], 1.0, batch=2)
    assert Dataset.empty(2).with_point([0.5, 0.5], 1.0, batch=2).with_point([0.1, 0.5], 1.0).batch.tolist() == [2, 2]  # type: ignore[union-attr]


def test_the_pattern_of_shifts_is_that_of_differences_to_the_present_batch() -> None:
    """D = A Aᵀ with A the rows' batches less the present one; 0 for all of the present batch."""
    task = Dataset(X, y, batch=[4, 6, 6], present=6)
    assert task.shift_pattern.tolist() == [[2, 0, 0], [0, 0, 0], [0, 0, 0]]  # type: ignore[union-attr]
    assert task.has_shifts
    new = Dataset(X, y, batch=[4, 6, 6], present=7)
    assert new.shift_pattern.tolist() == [[2, 1, 1], [1, 2, 2], [1, 2, 2]]  # type: ignore[union-attr]
    assert new.shift_pattern_of(slice(1, 2)).tolist() == [[1, 2, 2]]  # type: ignore[union-attr]
    one = Dataset(X, y, batch=[4, 4, 4])
    assert not one.shift_pattern.any()  # type: ignore[union-attr]
    assert not one.has_shifts
    assert Dataset(X, y).shift_pattern is None
    assert not Dataset(X, y).has_shifts


def test_shifts_that_drift_are_alike_as_long_as_that() -> None:
    """corr(g(s), g(t)) = exp(−|s − t|/drift); rows of the present time have no shift, to the last bit."""
    task = Dataset(X, y, batch=[0.0, 3.0, 10.0], present=10.0, drift=5)
    c = torch.exp(-torch.tensor([[0.0, 3.0, 10.0], [3.0, 0.0, 7.0], [10.0, 7.0, 0.0]], dtype=torch.float64) / 5.0)
    A = torch.tensor([[1.0, 0.0, -1.0], [0.0, 1.0, -1.0], [0.0, 0.0, 0.0]], dtype=torch.float64)
    D = task.shift_pattern
    assert D is not None
    torch.testing.assert_close(D, A @ c @ A.mT, rtol=1e-12, atol=1e-12)
    assert not D[2].any()
    assert not D[:, 2].any()
    assert torch.equal(task.shift_pattern_of(slice(1, 2)), D[1:2])  # type: ignore[arg-type]
    assert task.shift_groups.tolist() == [0.0, 0.0, 2.0]  # type: ignore[union-attr]
    assert replace(task, drift=None).shift_groups.tolist() == [0.0, 3.0, 10.0]  # type: ignore[union-attr]
    apart, none = (Dataset(X, y, batch=[0.0, 3.0, 3.0], present=7.0, drift=length) for length in (1e-3, None))
    torch.testing.assert_close(apart.shift_pattern, none.shift_pattern)
    assert task.head(2).drift == task.rows(slice(1)).drift == task.repeated(2).drift == 5.0
    assert Dataset(X, y, drift=5).drift is None


@pytest.mark.parametrize("drift", [0, -1.0, float("nan"), float("inf"), "a month", True])
def test_a_drift_is_a_positive_length_of_time(drift: Any) -> None:
    """The time over which shifts stay alike."""
    with pytest.raises(InputError, match="drift of the data set is a positive number, the time over which shifts"):
        Dataset(X, y, batch=[1, 2, 3], drift=drift)


@pytest.mark.parametrize(
    ("batch", "present", "message"),
    [
        ([1, 2], None, r"batch of data set 'run 7' must have one number per result, shape \(3,\).*\(2,\)"),
        (["a", "b", "b"], None, r"batch of data set 'run 7' must be numbers.*number them where they have names"),
        ([1, 2, float("nan")], None, r"batch of data set 'run 7' must be finite, but row 2 is nan"),
        (None, 3, r"present of data set 'run 7' is one of its batches: give batch"),
        ([1, 1, 2], "Monday", r"number them where they have names"),
        ([1, 1, 2], [1, 2], r"present of data set 'run 7' must be the number of a batch, but it is \[1.0, 2.0\]"),
        ([1, 1, 2], float("nan"), r"present of data set 'run 7' must be the number of a batch"),
    ],
)
def test_batches_that_do_not_fit_are_refused(batch: Any, present: Any, message: str) -> None:
    """One finite number per result, and one for the present batch."""
    with pytest.raises(InputError, match=message):
        Dataset(X, y, "run 7", batch=batch, present=present)
