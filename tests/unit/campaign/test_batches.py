"""Batches of a campaign: what its files say of days and lots reaches the models, and new rows get the present one."""

from __future__ import annotations

import math
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.problems import points
from tests.unit.campaign.campaigns import make, value

from headstart import InputError
from headstart.campaign.campaign import Campaign, append_experiments, open_campaign
from headstart.campaign.desk.changes import add_row, save_results
from headstart.campaign.desk.contents import contents_of, evidence_of
from headstart.campaign.desk.history import digest
from headstart.campaign.fitted import fit_campaign, own_results
from headstart.campaign.suggestions import best_without_shifts, next_experiments, noise_of, reference_point
from headstart.cli.campaign_tables import best_without_shifts_in_words
from headstart.data.dataset import Dataset
from headstart.data.space import Space

TODAY = date(2026, 11, 4)
DAYS = ("02.11.2026", "02.11.2026", "03.11.2026")
ROWS = tuple((x, s, value(x, s)) for x, s in ((0.3, "u"), (0.5, "v"), (0.9, "u")))


def _table(batches: tuple[str, ...], rows: tuple[Any, ...] = ROWS) -> str:
    told = zip(batches, rows, strict=True)
    return "day,x,s,y\n" + "".join(f"{batch},{x},{s},{y}\n" for batch, (x, s, y) in told)


def _opened(folder: Path, told: str = 'batch = "day"', current: str = _table(DAYS), **more: Any) -> Campaign:
    """The campaign with a line in its toml, of which no past file knows a day."""
    make(folder, current=current)
    toml = folder / "headstart.toml"
    toml.write_text(f"{told}\n{toml.read_text()}")
    return open_campaign(folder, **{"today": TODAY, **more})


def _own(campaign: Campaign) -> Dataset:
    space = Space.of({p.name: p.distribution() for p in campaign.file.parameters})
    return own_results(campaign, campaign.file.results[0], space)


def test_the_days_of_results_are_batches_and_today_is_the_present_one(tmp_path: Path) -> None:
    """Whether it has a result yet or not."""
    data = _own(_opened(tmp_path))
    assert data.batch is not None
    assert data.present is not None
    assert (data.batch.tolist(), float(data.present), data.drift) == ([0, 0, 1], 2, None)
    then = _own(_opened(tmp_path, today=date(2026, 11, 3)))
    assert then.present is not None
    assert float(then.present) == 1


def test_a_slow_drift_counts_days(tmp_path: Path) -> None:
    """The numbers of batches are then days, and today is one of them."""
    data = _own(_opened(tmp_path, 'batch = "day"\ndrift = 30'))
    assert data.batch is not None
    assert data.present is not None
    assert (data.batch - data.present).tolist() == [-2, -2, -1]
    assert data.drift == 30


def test_the_present_lot_is_the_last_in_the_table(tmp_path: Path) -> None:
    """Also that of a row that has no result yet, and an empty cell is the lot above."""
    rows = (*ROWS, (0.4, "u", ""))
    data = _own(campaign := _opened(tmp_path, current=_table(("L1", "", "L2", "L3"), rows)))
    assert data.batch is not None
    assert data.present is not None
    assert (data.batch.tolist(), float(data.present)) == ([0, 0, 1], 2)
    assert [e.batch for e in campaign.experiments] == ["L1", "L1", "L2", "L3"]
    assert any("row 3: ''" in remark and "batch of the row above" in remark for remark in campaign.remarks)


def test_past_files_are_batches_of_their_own(tmp_path: Path) -> None:
    """With days in each file's own spelling; the batch of a row that is left out goes with it."""
    folder = make(tmp_path, current=_table(DAYS))
    past = "run;x;s;Day;y\n1;0,1;u;25.10.2025;2\n2;0,2;v;26.10.2025;\n3;0,4;u;26.10.2025;7\n4;0,6;u;;9,5\n"
    (folder / "b.csv").write_text(past)
    toml = folder / "headstart.toml"
    toml.write_text(f'batch = "day"\n{toml.read_text()}')
    campaign = open_campaign(folder, today=TODAY)
    a, b = campaign.past
    assert a.batch is None
    assert b.batch is not None
    assert b.batch.numbers.tolist() == [0, 1, 1]
    assert list(b.batch.names.values()) == ["2025-10-25", "2025-10-26"]
    assert "Without a column 'day' all results of a file count as one batch: " + str(folder / "a.csv") + "." in (
        campaign.remarks
    )
    fitted = fit_campaign(campaign)
    assert [own.data.has_shifts for own in fitted.first.past] == [False, True]
    assert fitted.first.target.has_shifts


def test_new_rows_have_the_present_day_as_the_file_writes_days(tmp_path: Path) -> None:
    """An own row that says another day keeps it."""
    campaign = _opened(tmp_path)
    append_experiments(campaign, [{"x": 0.61, "s": "u"}])
    assert campaign.table.file.read_text().splitlines()[-1] == "04.11.2026,0.61,u,"

    def opening(folder: Path, **more: Any) -> Campaign:
        return open_campaign(folder, today=TODAY, **more)

    for typed, day in ({}, "04.11.2026"), ({"day": "1.11.2026"}, "1.11.2026"):
        seen = digest(campaign.table.file.read_bytes())
        assert seen is not None
        assert add_row(tmp_path, seen, {"x": "0.2", "s": "v", "y": "1.5", **typed}, opening=opening) is not None
        assert campaign.table.file.read_text().splitlines()[-1] == f"{day},0.2,v,1.5"


def test_what_was_learnt_is_of_the_present_day(tmp_path: Path) -> None:
    """What is kept of yesterday is not taken for today's, unless batches are no days."""
    today = evidence_of(_opened(tmp_path), "besides")
    assert today == evidence_of(_opened(tmp_path), "besides")
    assert today != evidence_of(_opened(tmp_path, today=date(2026, 11, 5)), "besides")
    assert today != evidence_of(_opened(tmp_path, current=_table(("01.11.2026", *DAYS[1:]))), "besides")
    assert contents_of(tmp_path).today == date.today().isoformat()
    without = evidence_of(_opened(tmp_path, 'model = "auto"'), "besides")
    assert without == evidence_of(_opened(tmp_path, 'model = "auto"', today=date(2026, 11, 5)), "besides")


def test_a_table_without_the_column_is_one_batch(tmp_path: Path) -> None:
    """It is remarked on, and new rows are as ever."""
    rows = "x,s,y\n" + "".join(f"{x},{s},{y}\n" for x, s, y in ROWS)
    past = "run,x,s,day,y\n1,0.1,u,2025-10-25,2\n2,0.4,u,2025-10-26,7\n3,0.6,u,2025-10-26,9\n"
    make(tmp_path)
    (tmp_path / "b.csv").write_text(past)
    toml = tmp_path / "headstart.toml"
    toml.write_text(f'batch = "day"\n{toml.read_text()}')
    (tmp_path / "current.csv").write_text(rows)
    campaign = open_campaign(tmp_path, today=TODAY)
    assert _own(campaign).batch is None
    assert f"{tmp_path / 'a.csv'}, {tmp_path / 'current.csv'}." in str(campaign.remarks)
    append_experiments(campaign, [{"x": 0.61, "s": "u"}])
    assert campaign.table.file.read_text() == f"{rows}0.61,u,\n"


def test_a_column_that_no_file_has_is_refused_with_its_line(tmp_path: Path) -> None:
    """And with the name that may be meant."""
    with pytest.raises(InputError, match=r"headstart.toml, line 1: batch names 'dya', but no file has .*'day'"):
        _opened(tmp_path, 'batch = "dya"')


def test_results_of_tomorrow_are_remarked_on(tmp_path: Path) -> None:
    """They count; a row that is planned for tomorrow is none."""
    rows = (*ROWS, (0.4, "u", ""))
    campaign = _opened(tmp_path, current=_table(("02.11.2026", "05.11.2026", "03.11.2026", "06.11.2026"), rows))
    told = [remark for remark in campaign.remarks if "future" in remark]
    assert len(told) == 1
    assert "row 3, column 'day': '05.11.2026' lies in the future: today is 2026-11-04." in told[0]


def test_days_that_can_be_two_are_remarked_on(tmp_path: Path) -> None:
    """And new rows are written so that nobody can mistake them."""
    campaign = _opened(tmp_path, current=_table(("01/11/2026", "02/11/2026", "03/11/2026")))
    assert any("'01/11/2026' is taken for 2026-11-01, the day first" in remark for remark in campaign.remarks)
    assert campaign.batches.cell == "2026-11-04"


@pytest.mark.parametrize("model", ["rgpe", "hgp"])
def test_a_model_that_knows_no_shifts_is_refused_with_its_line(tmp_path: Path, model: str) -> None:
    """Before anything is learnt, with both ways out."""
    campaign = _opened(tmp_path, f'batch = "day"\nmodel = "{model}"')
    with pytest.raises(
        InputError, match=rf"headstart.toml, line 2: model {model} knows no shifts .* auto, or delete batch = \"day\""
    ):
        fit_campaign(campaign)


def test_without_a_batch_nothing_changes(tmp_path: Path) -> None:
    """A column of days that is ignored gives the models and suggestions of a table without it, bit for bit."""
    plain = "x,s,y\n" + "".join(f"{x},{s},{y}\n" for x, s, y in ROWS)
    found = []
    for name, current in (("with", _table(DAYS)), ("without", plain)):
        (tmp_path / name).mkdir()
        make(tmp_path / name, current=current)
        toml = tmp_path / name / "headstart.toml"
        toml.write_text(toml.read_text().replace('["run"]', '["run", "day"]'))
        fitted = fit_campaign(open_campaign(tmp_path / name, today=TODAY))
        X = torch.linspace(0, 1, 7, dtype=torch.float64).unsqueeze(-1).expand(7, fitted.space.d)
        predicted = fitted.first.posterior.predict(X)
        found.append((next_experiments(fitted, 2), [part.tolist() for part in predicted]))
        assert fitted.first.target.batch is None
    assert found[0] == found[1]


def test_a_day_that_was_another_one_can_be_corrected(tmp_path: Path) -> None:
    """As a setting can, in one cell of the table."""
    campaign = _opened(tmp_path)
    seen = digest(campaign.table.raw)
    assert seen is not None
    assert save_results(tmp_path, seen, {(4, "day"): "04.11.2026"}) is not None
    data = _own(open_campaign(tmp_path, today=TODAY))
    assert data.batch is not None
    assert data.present is not None
    assert (data.batch.tolist(), float(data.present)) == ([0, 0, 1], 1)


def test_batches_are_told_in_words(tmp_path: Path) -> None:
    """How many there are, and the present one, or that nobody has said which it is."""
    assert _opened(tmp_path, 'model = "auto"').batches_in_words == ""
    told = (
        "Batch: day. 0 in the past files, 2 with results in this campaign. What is expected is a result in the present"
    )
    assert _opened(tmp_path).batches_in_words == f"{told} one, 2026-11-04, which has no result yet."
    assert _opened(tmp_path, today=date(2026, 11, 3)).batches_in_words == f"{told} one, 2026-11-03."
    nobody = _opened(tmp_path, 'batch = "lot"', current="lot,x,s,y\n,0.3,u,3.4\n")
    assert nobody.batches_in_words.endswith("0 with results in this campaign. Write the present one into its column.")


def test_files_of_which_one_cannot_drift_are_refused(tmp_path: Path) -> None:
    """Names lie in no order; the column and what to do are told."""
    campaign = _opened(tmp_path, 'batch = "day"\ndrift = 30', current=_table(("L1", "L1", "L2")))
    with pytest.raises(InputError, match=r"current.csv, column 'day': 'L1' is neither a date nor a number"):
        fit_campaign(campaign)


def test_an_experiment_that_repeats_another_to_show_a_shift_is_a_control(tmp_path: Path) -> None:
    """With its settings as they were run, and before the others; of the days before repeats are no noise."""
    run = points(12, seed=3).tolist()
    days = [f"2026-11-0{1 + i // 4}" for i in range(12)]
    results = [sum(math.sin(5 * v) for v in x) + (0.0, 3.0, -3.0)[i // 4] for i, x in enumerate(run)]
    written = [",".join(map(str, (day, *x, y))) for day, x, y in zip(days, run, results, strict=True)]
    (tmp_path / "current.csv").write_text("day,a,b,y\n" + "\n".join(written) + "\n")
    alike = (1 - 0.02 * points(4, seed=30)).tolist()
    (tmp_path / "list.csv").write_text("a,b\n" + "".join(f"{a},{b}\n" for a, b in [*run, *alike]))
    range_ = 'kind = "float"\nlow = 0.0\nhigh = 1.0\n'
    toml = 'past = []\nbatch = "day"\nmodel = "gpbo"\ncandidates = "list.csv"\n[objectives.y]\ndirection = "minimize"\n'
    (tmp_path / "headstart.toml").write_text(f"{toml}[parameters.a]\n{range_}[parameters.b]\n{range_}")
    fitted = fit_campaign(open_campaign(tmp_path, today=TODAY))
    first, second = next_experiments(fitted, 2)
    assert first.control
    assert [first.values["a"], first.values["b"]] in run
    assert not second.control
    assert [second.values["a"], second.values["b"]] in alike
    yesterday = fit_campaign(open_campaign(tmp_path, today=date(2026, 11, 3)))
    assert not any(row.control for row in next_experiments(yesterday, 2))


def test_repeats_on_different_days_do_not_scatter_by_the_noise_alone(tmp_path: Path) -> None:
    """Those of one day do; where there are none the model says what the noise is."""
    rows = [(0.3, "u", 4.0), (0.3, "u", 9.0), (0.3, "u", 11.0)]
    for days, expected in ((DAYS[1:] + DAYS[2:], (2**0.5, 1)), (("2026-11-01", "2026-11-02", "2026-11-03"), None)):
        fitted = fit_campaign(_opened(tmp_path, current=_table(days, tuple(rows))))
        found = noise_of(fitted.first, reference_point(fitted))
        assert found == pytest.approx(expected) if expected else found[1] == 0


def test_the_best_result_may_be_that_of_a_day_alone(tmp_path: Path) -> None:
    """With shifts taken away another row is expected to be the best; of one day it is the best result itself."""
    settings = [(0.58, "u"), (0.3, "u"), (0.8, "u"), (0.9, "u"), (0.2, "u"), (0.3, "u")]
    rows = tuple((x, s, value(x, s) + (9 if i >= 3 else 0)) for i, (x, s) in enumerate(settings))
    days = ("2026-11-02",) * 3 + ("2026-11-03",) * 3
    fitted = fit_campaign(_opened(tmp_path, current=_table(days, rows), today=date(2026, 11, 3)))
    assert fitted.campaign.best is not None
    assert fitted.campaign.best.number == 5
    found = best_without_shifts(fitted)
    assert found is not None
    best, expected = found
    assert best.number == 2
    assert expected.low < 9 + value(0.58, "u") < expected.high
    line = "With shifts between batches taken away row 2 is expected to be the best: "
    assert best_without_shifts_in_words(fitted).startswith(line)
    alone = fit_campaign(_opened(tmp_path, current=_table(days[:3], rows[:3])))
    assert best_without_shifts(alone) is None
    assert best_without_shifts_in_words(alone) == ""
