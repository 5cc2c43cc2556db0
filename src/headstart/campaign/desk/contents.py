"""What a folder holds at the moment: a digest of every file that the campaign reads."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from headstart.campaign.campaign import Campaign, open_campaign
from headstart.campaign.desk.history import digest
from headstart.campaign.experiments import experiments_in
from headstart.campaign.file import TOML
from headstart.campaign.fitted import Fitted
from headstart.campaign.toml.reading import read_campaign_file
from headstart.sources.files.tables import read_table

__all__ = ["FolderContents", "contents_of", "evidence_of", "opened_again", "with_campaign"]


@dataclass(frozen=True, slots=True)
class FolderContents:
    """The digests of the files, by their paths; ``current`` is the path of the experiments."""

    files: Mapping[str, str | None]
    current: str

    @property
    def key(self) -> str:
        """Changes with every file."""
        return _joined(self.files)

    @property
    def besides(self) -> str:
        """Changes with every file but that of the experiments."""
        return _joined({path: own for path, own in self.files.items() if path != self.current})


def contents_of(folder: Path) -> FolderContents:
    """The files that ``headstart.toml`` names, and itself."""
    file = read_campaign_file(folder / TOML)
    described = [p.descriptors for p in file.parameters if isinstance(p.descriptors, str) and p.descriptors]
    names = [TOML, *file.past, *described, *([file.candidates] if file.candidates else []), file.current]
    return FolderContents({name: _digest_at(folder / name) for name in names}, file.current)


def _digest_at(path: Path) -> str | None:
    return digest(path.read_bytes()) if path.is_file() else None


def opened_again(folder: Path, before: Campaign | None) -> Campaign:
    """The campaign; ``before`` is as it was when the same files but ``current.csv`` were read, if they were."""
    if before is None or before.folder != folder:
        return open_campaign(folder)
    own: list[str] = []
    table = read_table(before.table.path)
    experiments = experiments_in(table, before.file, own)
    path = str(before.table.path)
    kept = [remark for remark in before.remarks if not remark.startswith(path)]
    return replace(before, table=table, experiments=experiments, remarks=(*kept, *table.remarks, *own))


def evidence_of(campaign: Campaign, besides: str) -> str:
    """Changes with everything that a model learns from: not with experiments that have no result yet."""
    measured = [
        (sorted(e.values.items()), sorted(e.results.items()), sorted(e.errors.items()))
        for e in campaign.experiments
        if e.results
    ]
    return hashlib.sha256(f"{besides} {measured!r}".encode()).hexdigest()


def with_campaign(fitted: Fitted, campaign: Campaign) -> Fitted:
    """The same models, with the campaign as it is now: rows without a result may have come, gone or moved."""
    outcomes = tuple(replace(own, campaign=campaign) for own in fitted.outcomes)
    return replace(fitted, campaign=campaign, outcomes=outcomes)


def _joined(files: Mapping[str, str | None]) -> str:
    return hashlib.sha256(repr(sorted(files.items())).encode()).hexdigest()
