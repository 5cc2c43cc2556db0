"""The desk of one folder: what its files say now, and what has been learnt from them.

The files are the only state. Whatever is kept here is kept by the digest of the files it came from, and can be made
again.
"""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headstart.campaign.campaign import Campaign
from headstart.campaign.desk.contents import FolderContents, PastKept, contents_of, evidence_of, with_campaign
from headstart.campaign.desk.history import digest
from headstart.campaign.file import TOML
from headstart.campaign.fitted import Fitted
from headstart.campaign.init import CampaignPlan, Looked, look_at
from headstart.sources.files.tables import Table, read_table
from headstart.web.forms import tried
from headstart.web.jobs import (
    Ask,
    Asked,
    Compare,
    Draw,
    DrawnPictures,
    Judge,
    Judged,
    Learn,
    Learned,
    RowKey,
    RowOutlook,
    outlooks,
    row_key,
)
from headstart.web.worker import DeskWork, Worker

_KEPT = 3  # of everything that has been learnt or drawn
_WORKS = 40
_BESIDE = 24  # rows that are predicted while somebody waits; more are left to the worker


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The folder at one moment. ``seen`` is the digest of the experiments' file, which forms carry."""

    campaign: Campaign
    contents: FolderContents
    evidence: str
    seen: str


class Desk:
    """A folder, its worker, and what is kept of both."""

    def __init__(self, folder: Path, worker: Worker) -> None:
        self.folder = folder
        self.worker = worker
        self.changing = threading.Lock()  # of the folder, by one request at a time
        self._lock = threading.RLock()
        self._opened: tuple[str, Snapshot] | None = None
        self._past = PastKept()
        self._learned: OrderedDict[str, Learned] = OrderedDict()
        self._judged: OrderedDict[str, Judged] = OrderedDict()
        self._rows: dict[tuple[str, RowKey], RowOutlook] = {}
        self._pictures: OrderedDict[str, Mapping[str, bytes]] = OrderedDict()
        self._tables: dict[Path, tuple[str, Table]] = {}
        self._looked: tuple[str, Looked] | None = None
        self._works: OrderedDict[str, DeskWork] = OrderedDict()
        self._named: dict[str, str] = {}  # what is being worked on, by what it is for

    @property
    def begun(self) -> bool:
        """Whether there is a campaign."""
        return (self.folder / TOML).exists()

    def now(self) -> Snapshot:
        """The folder as it is; an ``InputError`` where its files cannot be used."""
        contents = contents_of(self.folder)
        with self._lock:
            if self._opened is not None and self._opened[0] == contents.key:
                return self._opened[1]
            campaign = self._past.opened(self.folder)
            evidence = evidence_of(campaign, contents.besides)
            found = Snapshot(campaign, contents, evidence, str(digest(campaign.table.raw)))
            self._opened = (contents.key, found)
            return found

    def warm(self) -> None:
        """Read the files and begin to learn from them before anybody asks; what is wrong with them is told then."""

        def read() -> None:
            if self.begun:
                tried(lambda: self.learned(self.now()))

        threading.Thread(target=read, daemon=True, name="headstart reads ahead").start()

    def opening(self, folder: Path, **more: Any) -> Campaign:
        """The campaign anew (``open_campaign``), with past files as they were read before if they are the same."""
        with self._lock:
            return self._past.opened(folder, **more)

    def table(self, path: Path) -> Table:
        """A past file, read once as long as it does not change."""
        own = str(digest(path.read_bytes()))
        with self._lock:
            kept = self._tables.get(path)
        if kept is None or kept[0] != own:
            kept = (own, read_table(path))
            with self._lock:
                self._tables[path] = kept
        return kept[1]

    def looked(self, past: Sequence[Path], plan: CampaignPlan) -> Looked:
        """What past files are taken for; looked at once as long as neither they nor the plan change."""
        key = repr((plan, [(path, digest(path.read_bytes())) for path in past]))
        with self._lock:
            if self._looked is not None and self._looked[0] == key:
                return self._looked[1]
        found = look_at(past, self.folder, plan)
        with self._lock:
            self._looked = (key, found)
        return found

    # ── what takes a while ────────────────────────────────────────────────────────────────────────────────────────

    def learned(self, now: Snapshot) -> Learned | DeskWork:
        """What the files say, or the work that finds out, which is begun if it is not on its way."""
        with self._lock:
            if now.evidence in self._learned:
                return self._learned[now.evidence]
            return self._begin(f"learn {now.evidence}", "Learning from the files", Learn(self.folder))

    def judged(self, now: Snapshot) -> Judged | DeskWork:
        """What the past is worth, or the work that finds out."""
        with self._lock:
            if now.evidence in self._judged:
                return self._judged[now.evidence]
            return self._begin(f"judge {now.evidence}", "Asking what the past is worth", Judge(self.folder))

    def outlook(self, now: Snapshot) -> str:
        """Whether it pays to go on, if somebody has asked."""
        judged = self._judged.get(now.evidence)
        return judged.outlook if judged is not None else ""

    def fitted(self, now: Snapshot, learned: Learned) -> Fitted:
        """The models with the campaign as it is now."""
        return with_campaign(learned.fitted, now.campaign)

    def pictures(self, now: Snapshot) -> Mapping[str, bytes] | DeskWork:
        """The pictures by their names, or the work that draws them."""
        with self._lock:
            if now.contents.key in self._pictures:
                return self._pictures[now.contents.key]
            return self._begin(f"draw {now.contents.key}", "Drawing", Draw(self.folder))

    def ask(self, n: int) -> DeskWork:
        """Begin to choose n experiments, which are appended when they are found."""
        known = next(reversed(self._learned), "")
        doing = f"Choosing {n} experiment{'' if n == 1 else 's'}"
        return self._begin("ask", doing, Ask(self.folder, n, known), then="/experiments")

    def compare(self, looked: Looked) -> DeskWork:
        """Begin to compare past campaigns."""
        name = f"compare {digest(repr((looked.file, [table.raw for table in looked.tables])).encode())}"
        return self._begin(name, "Comparing the past campaigns", Compare(looked))

    def work(self, ident: str) -> DeskWork | None:
        """The work of this name."""
        with self._lock:
            return self._works.get(ident)

    def again(self, work: DeskWork) -> None:
        """Forget work that went wrong, so that the next who asks begins it anew."""
        with self._lock:
            self._named = {name: ident for name, ident in self._named.items() if ident != work.id}

    def _begin(self, name: str, what: str, job: Any, then: str = "/") -> DeskWork:
        with self._lock:
            there = self._works.get(self._named.get(name, ""))
            # what went wrong is not tried again by itself, and what was found but not kept is looked for again
            kept = there is not None and name != "ask" and (bool(there.error) or isinstance(job, Compare))
            if there is not None and (kept or not there.done):
                return there
            work = DeskWork(secrets.token_urlsafe(9), what, job, then)
            self._works[work.id] = work
            self._named[name] = work.id
            for old in [w for w in self._works.values() if w.done][: max(0, len(self._works) - _WORKS)]:
                self._works.pop(old.id)
            self.worker.submit(work, self._keep)
            return work

    def _keep(self, work: DeskWork) -> None:
        with self._lock:
            result = work.result
            if isinstance(result, Asked):
                self._rows |= {(result.evidence, key): row for key, row in result.rows.items()}
                result = result.learned
            if isinstance(result, Learned):
                self._learned[result.evidence] = result
                self._rows |= {(result.evidence, key): row for key, row in result.rows.items()}
                while len(self._learned) > _KEPT:
                    old, _ = self._learned.popitem(last=False)
                    self._rows = {place: row for place, row in self._rows.items() if place[0] != old}
            elif isinstance(result, Judged):
                self._judged[result.evidence] = result
                while len(self._judged) > _KEPT:
                    self._judged.popitem(last=False)
            elif isinstance(result, DrawnPictures):
                self._pictures[result.key] = result.pictures
                while len(self._pictures) > _KEPT:
                    self._pictures.popitem(last=False)

    def outlooks(self, now: Snapshot, learned: Learned, rows: list[Mapping[str, Any]]) -> dict[RowKey, RowOutlook]:
        """What is expected of the rows; of those that nobody has asked about yet it is found out now."""
        keys = [row_key(now.campaign, row) for row in rows]
        with self._lock:
            known = {key: self._rows[learned.evidence, key] for key in keys if (learned.evidence, key) in self._rows}
        missing = [row for key, row in zip(keys, rows, strict=True) if key not in known][:_BESIDE]
        if missing:
            fresh = outlooks(self.fitted(now, learned), missing)
            with self._lock:
                self._rows |= {(learned.evidence, key): row for key, row in fresh.items()}
            known |= fresh
        return known
