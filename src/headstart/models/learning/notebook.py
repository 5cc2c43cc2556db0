"""``Notebook``: where what was learnt is looked up and noted down. This one forgets; others have a folder."""

from __future__ import annotations

from collections.abc import Sequence

from headstart.models.learning.numbers import Numbers


class Notebook:
    """Numbers by the content that they were learnt from, for all who learn at the same time.

    Whoever is to learn something claims it first: of several only one may, and the others ``wait``. A claim ends with
    ``note``, with ``give_up``, or with the process that has it.
    """

    def look_up(self, key: str) -> Numbers | None:  # noqa: ARG002
        """What is known under the key."""
        return None

    def claim(self, keys: Sequence[str]) -> list[str]:
        """Those of the keys that are now ours to learn: nobody has noted them, and nobody is at it."""
        return list(keys)

    def note(self, key: str, numbers: Numbers) -> None:
        """Keep what was learnt, and end the claim."""

    def give_up(self, keys: Sequence[str]) -> None:
        """End claims without a result."""

    def reject(self, key: str) -> None:
        """What was found under the key does not fit what it is for, so it is learnt."""

    def wait(self, seconds: float) -> bool:  # noqa: ARG002
        """Wait a moment for what others are learning; False when it has been too long, or there are no others.

        ``seconds`` is how long there was no news of it.
        """
        return False
