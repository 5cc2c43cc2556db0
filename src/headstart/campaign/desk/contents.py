"""What a folder holds at the moment: a digest of every file that the campaign reads."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

from headstart.campaign.campaign import Campaign, PastRead, open_campaign, read_past
from headstart.campaign.desk.history import digest
from headstart.campaign.file import TOML
from headstart.campaign.fitted import Fitted
from headstart.campaign.toml.reading import read_campaign_file
from headstart.sources.files.workbooks import workbook_file


@dataclass(frozen=True, slots=True)
class FolderContents:
    """The digests of the files, by their paths; ``current`` is the path of the experiments."""

    files: Mapping[str, str | None]
    current: str
    today: str = ""  # where batches may be days: another day is another batch

    @property
    def key(self) -> str:
        """Changes with every file, and from day to day where that matters."""
        return _joined({**self.files, "": self.today} if self.today else self.files)

    @property
    def besides(self) -> str:
        """Changes with every file but that of the experiments."""
        return _joined({path: own for path, own in self.files.items() if path != self.current})


def contents_of(folder: Path) -> FolderContents:
    """The files that ``headstart.toml`` names, and itself."""
    file = read_campaign_file(folder / TOML)
    described = [p.descriptors for p in file.parameters if isinstance(p.descriptors, str) and p.descriptors]
    names = [TOML, *file.past, *described, *([file.candidates] if file.candidates else []), file.current]
    paths = {name: workbook_file(folder / name) for name in names}  # a sheet's is its workbook
    files = {name: digest(path.read_bytes()) if path.is_file() else None for name, path in paths.items()}
    return FolderContents(files, file.current, date.today().isoformat() if file.batch else "")


class PastKept:
    """A folder's past files, which are read once as long as nothing but the experiments changes."""

    def __init__(self) -> None:
        self._kept: tuple[Path, str, PastRead] | None = None

    def opened(self, folder: Path, **more: Any) -> Campaign:
        """The campaign, as ``open_campaign`` gives it."""
        besides = contents_of(folder).besides
        if self._kept is None or self._kept[:2] != (folder, besides):
            self._kept = (folder, besides, read_past(folder))
        return open_campaign(folder, self._kept[2], **more)


def evidence_of(campaign: Campaign, besides: str) -> str:
    """Changes with everything that a model learns from: not with experiments that have no result yet."""
    measured: list[object] = [
        (sorted(e.values.items()), sorted(e.results.items()), sorted(e.errors.items()))
        for e in campaign.experiments
        if e.results
    ]
    if campaign.file.batch:
        measured += [campaign.batches.present, *(e.batch for e in campaign.experiments if e.results)]
    return hashlib.sha256(f"{besides} {measured!r}".encode()).hexdigest()


def with_campaign(fitted: Fitted, campaign: Campaign) -> Fitted:
    """The same models, with the campaign as it is now: rows without a result may have come, gone or moved."""
    outcomes = tuple(replace(own, campaign=campaign) for own in fitted.outcomes)
    return replace(fitted, campaign=campaign, outcomes=outcomes)


def _joined(files: Mapping[str, str | None]) -> str:
    return hashlib.sha256(repr(sorted(files.items())).encode()).hexdigest()
