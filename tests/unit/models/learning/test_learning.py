"""What is learnt passes through one place: what is known is not learnt again, and nobody waits for ever."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.problems import quick

from headstart.data.dataset import Dataset
from headstart.data.units import OutputMap
from headstart.errors import InputError, NumericalError
from headstart.gp.kernels import Kernel
from headstart.models.family import AUTO, FAMILY, RGPE, SHGP, STAR
from headstart.models.learning.crew import InTurn, Lesson, Processes, jobs_from
from headstart.models.learning.learning import Learning, learning
from headstart.models.learning.notebook import Notebook
from headstart.models.learning.numbers import Numbers, content_key, fit_in_numbers, fit_of_numbers, is_fit, options_of
from headstart.models.learning.progress import HowFar, LearningProgress, in_words
from headstart.models.star.independent import fit_independently


class Remembering(Notebook):
    """A notebook in memory, which counts what is learnt."""

    def __init__(self) -> None:
        self.kept: dict[str, Numbers] = {}
        self.noted: list[str] = []
        self.claimed: set[str] = set()
        self.rejected: list[str] = []

    def look_up(self, key: str) -> Numbers | None:
        return self.kept.get(key)

    def claim(self, keys: Sequence[str]) -> list[str]:
        self.claimed |= set(keys)
        return list(keys)

    def note(self, key: str, numbers: Numbers) -> None:
        self.kept[key] = numbers
        self.noted.append(key)
        self.claimed.discard(key)

    def give_up(self, keys: Sequence[str]) -> None:
        self.claimed -= set(keys)

    def reject(self, key: str) -> None:
        self.rejected.append(key)


def source(seed: int, n: int = 12, name: str = "") -> Dataset:
    generator = torch.Generator().manual_seed(seed)
    X = torch.rand(n, 2, generator=generator, dtype=torch.float64)
    return Dataset(X, torch.sin(3 * X[:, 0]) + 0.3 * torch.rand(n, generator=generator, dtype=torch.float64), name)


@pytest.mark.parametrize("name", ["AUTO", "SHGP", "BHGP", "STAR", "SCAML", "RGPE"])
def test_what_is_known_is_not_learnt_again_and_is_the_same(name: str) -> None:
    """Learnt a second time from the notebook, every hyperparameter, report and prediction is what it was."""
    model, book = quick(FAMILY[name]), Remembering()
    sources = [source(0, name="a"), source(1, name="b"), source(2, 9, "c")]
    with Learning(book).applied():
        first = model.learn(sources)
        learnt = len(book.noted)
        second = model.learn(sources)
    assert learnt >= 3
    assert len(book.noted) == learnt
    assert [str(report) for report in second.fit_reports] == [str(report) for report in first.fit_reports]
    assert [report.task for report in first.fit_reports][:3] == ["source 0 ('a')", "source 1 ('b')", "source 2 ('c')"]
    X = torch.rand(5, 2, dtype=torch.float64)
    torch.testing.assert_close(second.condition().predict(X), first.condition().predict(X), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("model", [AUTO, STAR, RGPE])
def test_one_more_source_is_learnt_alone(model: Any) -> None:
    """Its entry is the only new one of a source; names do not matter. Only a chain rests on all of them."""
    book = Remembering()
    own = quick(model).using(output_map=OutputMap.NONE)
    with Learning(book).applied():
        own.learn([source(i) for i in range(6)])
        before = _fits(book)
        own.learn([replace(source(i), name="renamed") for i in range(6)] + [source(9)])
    assert len(before) == 6
    assert len(_fits(book) - before) == 1
    assert len(book.noted) == len(set(book.noted))


def _fits(book: Remembering) -> set[str]:
    return {key for key, numbers in book.kept.items() if "params.lengthscale" in numbers}


def test_a_source_gives_what_it_gives_alone() -> None:
    """To rounding: the starting points depend neither on the other sources nor on what was learnt before."""
    sources = (*(source(i) for i in range(3)), source(7, 9))
    together = fit_independently(sources, quick(STAR), 3)
    for i, one in enumerate(sources):
        own = fit_independently((one,), quick(STAR), 3)
        scaled = own.layers[0].params.scaled(own.known.scale, own.known.offset)
        common = together.layers[i].params.scaled(together.known.scale, together.known.offset)
        torch.testing.assert_close(scaled.lengthscale, common.lengthscale, rtol=1e-4, atol=0)
        torch.testing.assert_close(scaled.outputscale, common.outputscale, rtol=1e-4, atol=0)


def test_a_constant_source_has_the_scale_of_the_others_in_its_key() -> None:
    """It is fitted in the others' units, so with other sources it is another entry."""
    flat, book = Dataset(source(0).X, torch.ones(12, dtype=torch.float64)), Remembering()
    with Learning(book).applied():
        fit_independently((flat, source(1)), quick(STAR), 0)
        fit_independently((flat, replace(source(1), y=10 * source(1).y)), quick(STAR), 0)
    assert len(set(book.noted)) == 4


def test_keys_differ_where_results_may() -> None:
    """Data, columns that were not recorded, errors, options and seeds; but not names and what concerns the target."""
    one = source(0)
    model = quick(STAR)

    def key(task: Dataset, options: str = options_of(model), seed: int = 0) -> str:
        return content_key("alone", [task], options, seed)

    keys = {
        key(one),
        key(replace(one, y=one.y + 1e-12)),
        key(replace(one, X=one.X + 1e-12)),
        key(replace(one, unseen=(1,))),
        key(replace(one, categories=((0, 1),))),
        key(replace(one, error_var=0.1 + 0 * one.y)),
        key(replace(one, error_var=0.2 + 0 * one.y)),
        key(one, options_of(quick(STAR, 2))),
        key(one, options_of(model.using(kernel=Kernel.RBF))),
        key(one, seed=1),
        content_key("level", [one], options_of(model), 0),
    }
    assert len(keys) == 11
    assert key(replace(one, name="other")) == key(one)
    assert options_of(model.anywhere()) == options_of(model)


def test_numbers_of_a_fit_come_back_or_are_refused() -> None:
    """All of params and report; a missing, misshapen or impossible number is no fit of the source."""
    alone = fit_independently((source(0),), quick(STAR, 2), 0)
    params, report = alone.layers[0].params, alone.reports[0]
    numbers = fit_in_numbers(params, report)
    again, told = fit_of_numbers(numbers, report.task, torch.device("cpu"))
    assert torch.equal(again.lengthscale, params.lengthscale)
    assert str(told) == str(report)
    assert is_fit(numbers, source(0))
    bad: list[dict[str, Any]] = [
        {k: v for k, v in numbers.items() if k != "params.noise_var"},
        {**numbers, "params.lengthscale": np.ones(3)},
        {**numbers, "params.lengthscale": -numbers["params.lengthscale"]},
        {**numbers, "params.outputscale": np.array(np.nan)},
        {**numbers, "params.offset": np.zeros(1)},
        {**numbers, "params.noise_var": np.array(1, dtype=np.int64)},
        {**numbers, "report.best": np.zeros(2, dtype=np.int64)},
        {**numbers, "report.objective": np.zeros(7)},
    ]
    assert [is_fit(one, source(0)) for one in bad] == [False] * len(bad)


def test_numbers_that_do_not_fit_are_learnt_anew() -> None:
    """Whoever wrote them: they are rejected and replaced."""
    book = Remembering()
    with Learning(book).applied():
        fit_independently((source(0),), quick(STAR), 0)
        (key,) = book.kept
        good = book.kept[key]
        book.kept[key] = {"something": np.zeros(3)}
        fit_independently((source(0),), quick(STAR), 0)
    assert set(book.rejected) == {key}
    assert np.array_equal(book.kept[key]["params.lengthscale"], good["params.lengthscale"])


def test_every_entry_of_auto_is_looked_at_before_it_is_believed() -> None:
    """Those of the sources, of the chain, and of the comparison: one of another shape is learnt anew."""
    book, sources = Remembering(), [source(0), source(1), source(2, 9)]
    with Learning(book).applied():
        quick(AUTO).learn(sources)
        kept = dict(book.kept)
        for key, numbers in kept.items():
            wrong: dict[str, Any] = {name: np.concatenate([v.ravel(), v.ravel()]) for name, v in numbers.items()}
            book.kept[key] = wrong
        quick(AUTO).learn(sources)
    assert len(kept) == 6
    assert set(book.rejected) == set(kept)
    assert {key: {n: v.shape for n, v in book.kept[key].items()} for key in kept} == {
        key: {n: v.shape for n, v in numbers.items()} for key, numbers in kept.items()
    }


class Taken(Remembering):
    """Everything is claimed by somebody else, who never ends."""

    waits = 0

    def claim(self, keys: Sequence[str]) -> list[str]:
        return []

    def wait(self, seconds: float) -> bool:
        assert seconds >= 0
        self.waits += 1
        return self.waits < 4


def test_nobody_waits_for_ever() -> None:
    """When it has been too long, what somebody else is at is learnt here as well."""
    book = Taken()
    with Learning(book).applied():
        alone = fit_independently((source(0), source(1)), quick(STAR), 0)
    assert book.waits == 4
    assert len(alone.layers) == 2
    assert len(book.noted) == 2


class Elsewhere(Remembering):
    """Somebody else learns everything while we wait."""

    def __init__(self, others: dict[str, Numbers]) -> None:
        super().__init__()
        self.others = others

    def claim(self, keys: Sequence[str]) -> list[str]:
        return []

    def wait(self, seconds: float) -> bool:
        key = next(iter(self.others))
        self.kept[key] = self.others.pop(key)
        return True


def test_what_others_learn_meanwhile_is_taken_over() -> None:
    """Nothing is learnt twice."""
    book = Remembering()
    with Learning(book).applied():
        fit_independently((source(0), source(1)), quick(STAR), 0)
    waiting = Elsewhere(dict(book.kept))
    with Learning(waiting).applied():
        fit_independently((source(0), source(1)), quick(STAR), 0)
    assert waiting.noted == []


def test_claims_end_where_learning_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error goes on to the caller, and others may try."""

    def failing(*_: Any, **__: Any) -> Any:
        raise NumericalError("no")

    monkeypatch.setattr("headstart.models.star.independent.fit_layer", failing)
    book = Remembering()
    with Learning(book).applied(), pytest.raises(NumericalError):
        fit_independently((source(0), source(1, 9)), quick(STAR), 0)
    assert book.claimed == set()


def test_how_one_learns_holds_inside_only() -> None:
    """And after an error it is as before."""
    book = Remembering()
    with pytest.raises(InputError), Learning(book).applied():
        STAR.learn([])
    with Learning(book).applied():
        assert learning().notebook is book
    assert type(learning().notebook) is Notebook


# ── several processes ─────────────────────────────────────────────────────────────────────────────────────────────

SCRIPT = """
import sys
import torch
from headstart import FAMILY, Dataset
from headstart.models.learning.crew import InTurn, Processes
from headstart.models.learning.learning import Learning
from headstart.gp.threads import round_alike

round_alike()
generator = torch.Generator().manual_seed(0)
def source(n):
    X = torch.rand(n, 3, generator=generator, dtype=torch.float64)
    return Dataset(X, torch.sin(4 * X.sum(-1)) + 0.1 * torch.rand(n, generator=generator, dtype=torch.float64))
sources = [source(n) for n in (30, 30, 25, 40, 30, 55)]
found = []
for crew in (InTurn(), Processes(2, always=True)):
    with Learning(crew=crew).applied():
        prior = FAMILY["STAR"].learn(sources, seed=1)
    found.append([p for layer in prior.alone.layers for p in (layer.params.lengthscale, layer.params.noise_var)])
print(all(torch.equal(a, b) for a, b in zip(*found)))
"""


def test_processes_learn_the_same_to_the_last_bit(tmp_path: Path) -> None:
    """As one process does; the script that asks for them need not be written for it."""
    script = tmp_path / "plain_script.py"
    script.write_text(SCRIPT)
    environment = {k: v for k, v in os.environ.items() if k != "MKL_CBWR"}
    done = subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, text=True, timeout=300)
    assert done.stdout.strip() == "True", done.stderr


class Deadly:
    """A lesson that ends the process it is learnt in, unless that is the one that gave it out."""

    keys = ("deadly",)
    cost = 1.0
    rows = 1

    def __init__(self) -> None:
        self.home = os.getpid()

    def only(self, which: Sequence[int]) -> Lesson:
        return self

    def accepts(self, i: int, numbers: Numbers) -> bool:
        return True

    def run(self) -> list[Numbers]:
        if os.getpid() != self.home:
            os._exit(1)
        return [{"x": np.ones(1)}]


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_process_that_dies_takes_nothing_with_it(caplog: pytest.LogCaptureFixture) -> None:
    """What it was doing, and all that is left, is done here."""
    lessons = [Deadly() for _ in range(3)]
    done = list(Processes(2, always=True).work(iter(lessons)))
    assert sorted(id(lesson) for lesson, _ in done) == sorted(map(id, lessons))
    assert "died" in caplog.text


def test_processes_are_started_only_where_that_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not for a second's work, nor for a single lesson."""

    def never(*_: Any) -> Iterator[Any]:
        raise AssertionError

    monkeypatch.setattr("headstart.models.learning.crew._in_processes", never)
    lessons: Iterable[Lesson] = [Deadly() for _ in range(4)]
    assert len(list(Processes(2).work(lessons))) == 4
    Deadly.cost = 100.0
    try:
        assert len(list(Processes(2).work([Deadly()]))) == 1
        with pytest.raises(AssertionError):
            list(Processes(2).work(lessons))
    finally:
        Deadly.cost = 1.0
    with pytest.raises(AssertionError):
        list(Processes(2).work(lessons, 100.0))  # many small ones


@pytest.mark.parametrize("wrong", [0, -2, 1.5, True, "two"])
def test_a_wrong_number_of_processes_is_refused(wrong: Any) -> None:
    """With what it may be."""
    with pytest.raises(InputError, match="n_jobs is how many processes"):
        SHGP.learn([source(0)], n_jobs=wrong)


def test_one_process_is_this_one() -> None:
    """And -1 is one for every processor."""
    assert jobs_from(1) == InTurn()
    assert jobs_from(3) == Processes(3)
    assert jobs_from(-1) in (InTurn(), Processes(len(os.sched_getaffinity(0))))


# ── progress ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_progress_says_what_how_far_and_how_long() -> None:
    """Before anything is done by experience, then by what it took so far."""
    told: list[HowFar] = []
    now = [100.0]
    progress = LearningProgress(told.append, lambda: now[0])
    progress.begin("Learning", 8.0)
    now[0] = 103.0
    progress.did(2.0)
    now[0] = 112.0
    progress.did(6.0)
    assert told[0] == HowFar("Learning", 0.0, 0.0, 8.0)
    assert told[1] == HowFar("Learning", 0.25, 3.0, 9.0)
    assert told[2] == HowFar("Learning", 1.0, 12.0, 0.0)
    assert str(told[1]) == "Learning: 25% after 3 s, about 9 s to go"
    assert [in_words(s) for s in (5, 89, 100, 7200)] == ["5 s", "89 s", "2 min", "2.0 h"]


@pytest.mark.parametrize("name", ["STAR", "SHGP", "RGPE"])
def test_progress_goes_from_nothing_to_all(name: str) -> None:
    """Also where some of it is known already."""
    told: list[HowFar] = []
    with Learning(Remembering(), progress=LearningProgress(told.append)).applied():
        quick(FAMILY[name]).learn([source(0), source(1, 9)])
        shares = [one.share for one in told]
        assert shares[0] == 0.0
        assert shares == sorted(shares)
        assert shares[-1] == pytest.approx(1.0)
        assert "2 sources (21 rows)" in told[0].doing
        told.clear()
        quick(FAMILY[name]).learn([source(0), source(1, 9), source(2, 8)])
        assert told[-1].share == pytest.approx(1.0)
