"""What is proposed for three messy files: which columns are the same, settings, what counts, what is left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.unit.sources.laboratory import HIGH, LOW, OTHER, SETS, SETTING, LabSet
from tests.unit.sources.later_laboratories import LATER

from headstart.campaign.init import CampaignPlan, Looked, look_at
from headstart.data.outcomes import Goal


def proposed(folder: Path, own: LabSet) -> Looked:
    return look_at(own.write(folder), folder, CampaignPlan())


def rights(own: LabSet, looked: Looked) -> list[tuple[str, bool, str]]:
    """For every column of every file what it is, whether the proposal is right, and what is proposed.

    A setting or a result is right if it is taken for one, with the columns of the other files that are the same and
    with no other; of what is left out it does not matter what else it is.
    """
    taken = looked.file.rename
    goal = looked.file.results[0]
    settings = {p.name for p in looked.file.parameters}
    members: dict[str, set[tuple[int, str]]] = {}
    truly: dict[str, set[tuple[int, str]]] = {}
    for i, file in enumerate(own.files):
        for header, quantity, _ in file.columns:
            members.setdefault(taken.get(header, header), set()).add((i, header))
            truly.setdefault(quantity, set()).add((i, header))
    found = []
    for i, file in enumerate(own.files):
        for header, quantity, _ in file.columns:
            name, role = taken.get(header, header), OTHER
            if name == goal.name:
                assert isinstance(goal.outcome, Goal)
                role = HIGH if goal.outcome.maximize else LOW
            elif name in settings:
                role = SETTING
            true = own.role(quantity)
            right = role == true and (true == OTHER or members[name] == truly[quantity])
            told = f"{own.name}, file {i + 1}, {header!r} ({true}): {role}, {sorted(members[name])}"
            found.append((true, right, told))
    return found


def shares(folders: pytest.TempPathFactory, sets: Sequence[LabSet]) -> tuple[dict[str, float], str]:
    """The share of columns that are right, of every kind and of every laboratory; and what is wrong."""
    count: Counter[str] = Counter()
    right: Counter[str] = Counter()
    wrong = []
    for own in sets:
        for kind, ok, told in rights(own, proposed(folders.mktemp(own.name), own)):
            for key in ("all", kind, own.name):
                count[key] += 1
                right[key] += ok
            wrong += [] if ok else [told]
    return {key: right[key] / count[key] for key in count}, "\n".join(wrong)


def test_the_proposals_for_twelve_laboratories_are_right(tmp_path_factory: pytest.TempPathFactory) -> None:
    """For nine of ten columns, of every kind for eight of ten, and in every laboratory for two thirds."""
    found, wrong = shares(tmp_path_factory, SETS)
    assert found["all"] >= 0.9, wrong
    assert all(found[kind] >= 0.8 for kind in (SETTING, HIGH, LOW, OTHER)), wrong
    assert all(found[own.name] >= 0.66 for own in SETS), wrong


def test_most_of_them_are_right_in_other_laboratories(tmp_path_factory: pytest.TempPathFactory) -> None:
    """In laboratories that were written later: for nine of ten columns, and in each for three quarters."""
    found, wrong = shares(tmp_path_factory, LATER)
    assert found["all"] >= 0.9, wrong
    assert all(found[own.name] >= 0.75 for own in LATER), wrong


def test_what_exists_in_sizes_is_found_and_no_range_is_taken_for_it(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Batch sizes, layers, particles, sheets and drills were drawn from uneven lists, everything else from ranges."""
    found: dict[tuple[str, str], tuple[float, ...]] = {}
    for own in [*SETS, *LATER]:
        looked = proposed(tmp_path_factory.mktemp(own.name), own)
        found |= {(own.name, p.name): p.values for p in looked.file.parameters if p.values}
    assert found == {
        ("training", "batch_size"): (16, 32, 64, 128),
        ("printing", "layer height [mm]"): (0.1, 0.15, 0.2, 0.3),
        ("extraction", "Partikelgröße [mm]"): (0.25, 0.5, 1.0),
        ("laser", "Blechdicke [mm]"): (2, 3, 6, 8),
        ("drilling", "drill dia. (mm)"): (4, 6, 8.5, 10),
    }
