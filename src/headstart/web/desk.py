"""The desk of one folder: what its files say now, and what has been learnt from them.

The files are the only state. Whatever is kept here is kept by the digest of the files it came from, and can be made
again.
"""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from matplotlib.figure import Figure

from headstart.campaign.campaign import Campaign
from headstart.campaign.desk.contents import FolderContents, PastKept, contents_of, evidence_of, with_campaign
from headstart.campaign.desk.history import digest
from headstart.campaign.file import TOML
from headstart.campaign.init import CampaignPlan, Looked, look_at
from headstart.campaign.suggestions import RowOutlook, outlooks_at
from headstart.draw.canvas import themed_svg
from headstart.draw.slices import slices_figure, slices_through
from headstart.gp.threads import single_thread
from headstart.sources.files.tables import Table, read_table
from headstart.sources.parameters import Kind, Parameter
from headstart.web import jobs
from headstart.web.jobs import Compared, DrawnPictures, Judged, Learned, RowKey
from headstart.web.problems import tried
from headstart.web.worker import DeskWork, Job, Worker

_KEPT = 4  # of every kind of result
_WORKS = 40

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The folder at one moment. ``seen`` is the digest of the experiments' file, which forms carry."""

    campaign: Campaign
    contents: FolderContents
    evidence: str
    seen: str


class SlicesThrough(list[bytes]):
    """Slices through one point, an SVG for every outcome of which something is known."""


def row_key(campaign: Campaign, values: Mapping[str, Any]) -> RowKey:
    """The settings of a row, without other columns."""
    return tuple((p.name, values[p.name]) for p in campaign.file.parameters)


class Desk:
    """A folder, its worker, and what is kept of both."""

    def __init__(self, folder: Path, worker: Worker) -> None:
        self.folder = folder
        self.worker = worker
        self.changing = threading.Lock()  # of the folder, by one request at a time
        self._lock = threading.RLock()
        self._past = PastKept()
        self._kept: dict[type, dict[Any, Any]] = {}  # results by their kind and what they came from
        self._works: dict[str, DeskWork] = {}

    @property
    def begun(self) -> bool:
        """Whether there is a campaign."""
        return (self.folder / TOML).exists()

    def _known(self, kind: type[T], key: Any) -> T | None:
        with self._lock:
            found: T | None = self._kept.get(kind, {}).get(key)
            return found

    def _keep(self, key: Any, result: T, most: int = _KEPT) -> T:
        with self._lock:
            kept = self._kept.setdefault(type(result), {})
            kept.pop(key, None)
            kept[key] = result
            for old in list(kept)[:-most]:
                del kept[old]
        return result

    def now(self) -> Snapshot:
        """The folder as it is; an ``InputError`` where its files cannot be used."""
        contents = contents_of(self.folder)
        if (known := self._known(Snapshot, contents.key)) is not None:
            return known
        campaign = self.opening(self.folder)
        evidence = evidence_of(campaign, contents.besides)
        return self._keep(contents.key, Snapshot(campaign, contents, evidence, str(digest(campaign.table.raw))))

    def opening(self, folder: Path, **more: Any) -> Campaign:
        """The campaign anew (``open_campaign``), with past files as they were read before if they are the same."""
        with self._lock:
            return self._past.opened(folder, **more)

    def table(self, path: Path) -> Table:
        """A past file, read once as long as it does not change."""
        key = (path, digest(path.read_bytes()))
        return self._known(Table, key) or self._keep(key, read_table(path), _WORKS)

    def looked(self, past: Sequence[Path], plan: CampaignPlan) -> Looked:
        """What past files are taken for; looked at once as long as neither they nor the plan change."""
        key = repr((plan, [(path, digest(path.read_bytes())) for path in past]))
        return self._known(Looked, key) or self._keep(key, look_at(past, self.folder, plan))

    def warm(self) -> None:
        """Read the files and begin to learn from them before anybody asks; what is wrong with them is told then."""
        read = (lambda: self.learned(self.now()) if self.begun else None,)
        threading.Thread(target=tried, args=read, daemon=True, name="headstart reads ahead").start()

    def learned(self, now: Snapshot) -> Learned | DeskWork:
        """What the files say, or the work that finds out, which is begun if it is not on its way."""
        return self._found(Learned, now.evidence, "Learning from the files", jobs.learn)

    def judged(self, now: Snapshot) -> Judged | DeskWork:
        """What the past is worth, or the work that finds out."""
        return self._found(Judged, now.evidence, "Asking what the past is worth", jobs.judge)

    def drawn(self, now: Snapshot) -> DrawnPictures | DeskWork:
        """The pictures, or the work that draws them."""
        return self._found(DrawnPictures, now.contents.key, "Drawing", jobs.draw)

    def _found(self, kind: type[T], key: str, what: str, job: Callable[..., T]) -> T | DeskWork:
        return self._known(kind, key) or self._begin(f"{kind.__name__} {key}", what, partial(job, self.folder))

    def ask(self, n: int) -> DeskWork:
        """Begin to choose n experiments, which are appended when they are found."""
        doing = f"Choosing {n} experiment{'' if n == 1 else 's'}"
        return self._begin("ask", doing, partial(jobs.ask, self.folder, n), then="/experiments")

    def compare(self, looked: Looked) -> DeskWork:
        """Begin to compare past campaigns."""
        name = f"compare {digest(repr((looked.file, [table.raw for table in looked.tables])).encode())}"
        return self._begin(name, "Comparing the past campaigns", partial(jobs.compare, looked))

    def work(self, ident: str) -> DeskWork | None:
        """The work of this name."""
        return self._works.get(ident)

    def again(self, work: DeskWork) -> None:
        """Forget work that went wrong, so that the next who asks begins it anew."""
        with self._lock:
            self._works.pop(work.id, None)

    def _begin(self, name: str, what: str, job: Job, then: str = "/") -> DeskWork:
        with self._lock:
            there = next((work for work in reversed(self._works.values()) if work.name == name), None)
            # what went wrong is not tried again by itself, and what was found but not kept is looked for again
            kept = there is not None and name != "ask" and (there.error or isinstance(there.result, Compared))
            if there is not None and (kept or not there.done):
                return there
            work = DeskWork(secrets.token_urlsafe(9), name, what, job, then)
            self._works[work.id] = work
            for old in [w for w in self._works.values() if w.done][: max(0, len(self._works) - _WORKS)]:
                self._works.pop(old.id)
            self.worker.submit(work, self._end)
            return work

    def _end(self, work: DeskWork) -> None:
        if isinstance(work.result, Learned | Judged | DrawnPictures):
            self._keep(work.result.key, work.result)

    def outlooks(self, now: Snapshot, learned: Learned, rows: Sequence[Mapping[str, Any]]) -> dict[RowKey, RowOutlook]:
        """What is expected of the rows; of those that nobody has asked about yet it is found out now."""
        asked = {row_key(now.campaign, row): row for row in rows}
        if missing := {key: row for key, row in asked.items() if key not in learned.rows}:
            with single_thread():
                found = outlooks_at(learned.fitted, list(missing.values()))
            learned.rows.update(zip(missing, found, strict=True))
        return {key: learned.rows[key] for key in asked}

    def slices(
        self, now: Snapshot, learned: Learned, point: Mapping[str, Any], *, narrow: bool = False
    ) -> SlicesThrough:
        """The slices through a point, which are drawn now if nobody has asked for them yet."""
        key = (now.contents.key, row_key(now.campaign, point), narrow)
        if (known := self._known(SlicesThrough, key)) is not None:
            return known
        fitted, best = with_campaign(learned.fitted, now.campaign), point == learned.reference
        found = SlicesThrough()
        with single_thread():
            slices = slices_through(fitted, point)
            for own in fitted.outcomes:
                if own.knows:
                    figure = slices_figure(own, slices, point, best=best, narrow=narrow)
                    found.append(svg_to_point_at(figure, now.campaign, [(s.parameter,) for s in slices]))
        return self._keep(key, found)


def svg_to_point_at(figure: Figure, campaign: Campaign, panels: Sequence[Sequence[Parameter]]) -> bytes:
    """The SVG with what tells a script which values somebody points at, for the parameters across, and up, of panels.

    The box of a panel is in shares of the picture, from the upper left.
    """
    drawn = themed_svg(figure)  # which lays the panels out
    told = []
    for parameters, axes in zip(panels, figure.axes, strict=False):
        place, ends = axes.get_position(), (axes.get_xlim(), axes.get_ylim())
        box = [round(share, 4) for share in (place.x0, 1 - place.y1, place.x1, 1 - place.y0)]
        told.append({"box": box, "axes": [_axis(campaign, *one) for one in zip(parameters, ends, strict=False)]})
    start = drawn.index(b"<svg") + 4
    return drawn[:start] + f' data-panels="{quote(json.dumps(told))}"'.encode() + drawn[start:]


def _axis(campaign: Campaign, p: Parameter, ends: tuple[float, float]) -> dict[str, Any]:
    return {
        "name": f"v{campaign.file.parameters.index(p)}",
        "ends": ends,
        "range": () if p.is_text else (p.low, p.high),
        "log": p.log,
        "whole": p.kind is Kind.INT,
        "values": p.values,
        "choices": p.choices,
    }
