"""``headstart demo`` from the command line to the picture."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

import headstart
from headstart import InputError
from headstart.bench.demo import Demo, DemoResult, run_demo
from headstart.bench.figures import draw_demo
from headstart.cli.main import app

TINY = ["demo", "--family", "forrester", "--runs", "1", "--steps", "3", "--source-points", "8"]


def test_the_demo_prints_a_comparison_and_saves_a_picture(tmp_path: Path) -> None:
    """A tiny run gives the table, the picture's path as it was given, and a PNG there."""
    out = tmp_path / "tiny.png"
    result = CliRunner().invoke(app, [*TINY, "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert "Head start against from scratch" in result.stdout
    assert "regret after 1 evaluation" in result.stdout
    assert "regret after 3 evaluations" in result.stdout
    assert f"Picture: {out}\n" in result.stdout
    assert "6/6" in result.stderr
    assert out.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (["--family", "rosenbrock"], "'rosenbrock'. Known are: forrester, alpine"),
        (["--model", "XGP"], "The model 'XGP' is not known. The demo can use: MHGP, SHGP"),
        (["--model", "gpbo"], "The model 'gpbo' uses no source data"),
        (["--steps", "0"], "steps must be at least 1, but it is 0."),
        (["--runs", "-2"], "runs must be at least 1, but it is -2."),
        (["--source-points", "0"], "source_points must be at least 1, but it is 0."),
        (["--noise", "-0.1"], "must not be negative, but it is -0.1."),
        (["--noise", "nan"], "must not be negative, but it is nan."),
        (["--seed", "-1"], "seed must not be negative, but it is -1."),
        (["--out", "no/such/folder/a.png"], "there is no folder no/such/folder. Create it first."),
        (["--out", "picture.xyz"], "picture.xyz must end in the name of a picture format: "),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_bad_input_gives_one_line_and_exit_code_2(wrong: list[str], message: str) -> None:
    """The line says what came and what was expected; there is no traceback and nothing was run."""
    result = CliRunner().invoke(app, [*TINY, *wrong])
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.startswith("headstart: ")
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""


def test_a_folder_in_the_place_of_the_picture_is_refused(tmp_path: Path) -> None:
    """Before the run, and the folder is left alone."""
    out = tmp_path / "a.png"
    out.mkdir()
    result = CliRunner().invoke(app, [*TINY, "--out", str(out)])
    assert result.exit_code == 2
    assert result.stderr == f"headstart: {out} cannot be written: Is a directory.\n"
    assert out.is_dir()


def test_a_word_in_the_place_of_a_number_is_refused() -> None:
    """The option is named."""
    result = CliRunner().invoke(app, ["demo", "--steps", "many"])
    assert result.exit_code == 2
    assert "Invalid value for '--steps'" in result.stderr


def test_the_version_is_printed() -> None:
    """``headstart --version``."""
    result = CliRunner().invoke(app, ["--version"])
    assert (result.exit_code, result.stdout) == (0, f"headstart {headstart.__version__}\n")


def test_asking_for_help_does_not_load_torch() -> None:
    """``headstart --help`` and ``headstart demo --help`` are answered without it."""
    program = (
        "import sys\n"
        "from typer.testing import CliRunner\n"
        "from headstart.cli.main import app\n"
        "for arguments in (['--help'], ['demo', '--help']):\n"
        "    assert CliRunner().invoke(app, arguments).exit_code == 0\n"
        "assert 'torch' not in sys.modules and 'matplotlib' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_equal_seeds_repeat_the_run_and_methods_meet_the_same_tasks() -> None:
    """Scratch meets the same target and noise whichever model it is compared with, and however many runs follow."""
    demo = Demo(family="forrester", runs=1, steps=3, source_points=8)
    calls: list[int] = []
    first = run_demo(demo, lambda: calls.append(1))
    assert len(calls) == demo.evaluations == 6
    again = run_demo(demo)
    assert torch.equal(first.scratch, again.scratch)
    assert torch.equal(first.head_start, again.head_start)
    other = run_demo(Demo(family="forrester", runs=2, steps=2, source_points=5, model="mhgp"))
    assert torch.equal(other.scratch[0], first.scratch[0, :2])


def test_regret_is_that_of_the_best_point_so_far() -> None:
    """It never rises, and is never negative beyond rounding."""
    result = run_demo(Demo(family="branin", runs=2, steps=4, source_points=20))
    for regret in (result.scratch, result.head_start):
        assert regret.shape == (2, 4)
        assert bool((regret.diff(dim=-1) <= 0).all())
        assert bool((regret > -1e-9).all())


def test_the_noise_of_a_family_is_the_papers_unless_given() -> None:
    """1 for Branin, 0.1 elsewhere."""
    assert Demo(family="branin").noise_std == 1.0
    assert Demo().noise_std == 0.1
    assert Demo(noise=0.0).noise_std == 0.0
    with pytest.raises(InputError, match="noise"):
        Demo(noise=float("inf"))


def _result(scratch: list[float], head_start: list[float]) -> DemoResult:
    rows = torch.tensor([scratch, head_start], dtype=torch.float64)
    return DemoResult(Demo(runs=1, steps=len(scratch)), rows[:1], rows[1:])


def test_the_table_counts_evaluations_to_what_scratch_reached() -> None:
    """Scratch counts to its own last improvement; a head start that never gets there has no count."""
    assert _result([3.0, 2.0, 1.0, 1.0], [4.0, 0.5, 0.5, 0.5]).evaluations_to_match() == (3, 2)
    assert _result([3.0, 2.0, 1.0], [4.0, 1.5, 1.5]).evaluations_to_match() == (3, None)
    assert _result([1.0] * 12, [1.0] * 12).marks == (1, 5, 10, 12)
    assert _result([1.0], [1.0]).marks == (1,)


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_a_picture_is_drawn_whatever_the_regrets(tmp_path: Path, suffix: str) -> None:
    """Also for regret 0, which a log axis cannot show, for one step, and for a head start that does not help."""
    results = [
        _result([3.0, 0.0], [0.0, 0.0]),
        _result([1.0], [2.0]),
        _result([3.0, 2.0, 1.0], [4.0, 1.5, 1.5]),
        DemoResult(Demo(runs=20, steps=3), torch.rand(20, 3).double(), torch.rand(20, 3).double()),
    ]
    for i, result in enumerate(results):
        path = tmp_path / f"{i}.{suffix}"
        draw_demo(result, path)
        assert path.stat().st_size > 1000
