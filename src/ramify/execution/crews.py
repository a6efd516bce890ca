"""Crews, wherever their members are: each answer is written down, so that work can be taken up again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ramify.execution.checkpoints import Journal, is_pair
from ramify.execution.contract import Member
from ramify.execution.states import KeptState, keep_state, restore_kept, strange


class JournalledCrew(ABC):
    """What all crews share: answers that an earlier run got are given again without any work."""

    def __init__(self, journal: Journal, n_members: int) -> None:
        self.journal, self.n_members = journal, n_members
        if len(journal.states) != n_members and (journal.states or journal.known):
            raise strange(f"states of {len(journal.states)} members, not of {n_members}")

    def __enter__(self) -> JournalledCrew:
        return self

    def __exit__(self, error: object, *_: object) -> None:
        self.dismiss(is_done=error is None)

    @abstractmethod
    def _call(self, what: str, arguments: tuple[Any, ...]) -> list[Any]:
        """What every member gives."""

    @abstractmethod
    def _save(self, paths: list[Path]) -> list[KeptState]:
        """Have every member write its state to a path of its own."""

    @abstractmethod
    def dismiss(self, is_done: bool) -> None:
        """Let the members go; where work is broken off, without waiting for them."""

    def ask(self, what: str, *arguments: Any) -> list[Any]:
        """What every member's method gives, in their order: numbers, and lists of numbers, that are written down."""
        if self.journal.is_recalling:
            answer = self._recalled(what)
            if not isinstance(answer, list) or len(answer) != self.n_members:
                raise strange("an answer that does not come from its members")
            return answer
        answer = [_plain(each) for each in self._call(what, arguments)]
        self.journal.note(what, answer)
        return answer

    def _recalled(self, what: str) -> Any:
        """The next answer that an earlier run got; refused where that had asked something else."""
        entry = self.journal.recall()
        if not is_pair(entry) or entry[0] != what:
            raise strange(f"an answer to something else than {what!r}")
        return entry[1]

    def exchange(self, give: str, combine: Callable[[list[Any]], Any], take: str) -> None:
        """Every member gives something; what is combined of that, all of them take."""
        what = f"{give}, {take}"
        if self.journal.is_recalling:
            if self._recalled(what) is not None:
                raise strange("an answer where there was none")
            return
        self._call(take, (combine(self._call(give, ())),))
        self.journal.note(what, None)

    def fetch(self, what: str, *arguments: Any) -> Iterator[Any]:
        """What members' methods give at the end, in their order: large things, that are not written down."""
        return iter(self._call(what, arguments))

    def told(self) -> str:
        """Nothing is sent anywhere."""
        return ""

    def keep(self) -> None:
        """Say that work can be taken up again from here: if it is time, a checkpoint is written."""
        if self.journal.is_due():
            self.journal.write(self._save, self.n_members)


class CrewHere(JournalledCrew):
    """Members in this process, one after the other or side by side."""

    def __init__(self, members: Sequence[Member], journal: Journal, run: Callable[..., Iterator[Any]]) -> None:
        super().__init__(journal, len(members))
        self.members, self._run = members, run
        for member, kept in zip(members, journal.states, strict=False):  # no states: nothing was done before
            restore_kept(kept, member.restore)

    def _call(self, what: str, arguments: tuple[Any, ...]) -> list[Any]:
        if len(self.members) == 1:
            return [getattr(self.members[0], what)(*arguments)]
        return list(self._run(lambda member: getattr(member, what)(*arguments), self.members))

    def _save(self, paths: list[Path]) -> list[KeptState]:
        return [keep_state(path, member.state()) for member, path in zip(self.members, paths, strict=True)]

    def dismiss(self, is_done: bool) -> None:
        """Let the members go."""
        self.members = []


def _plain(answer: Any) -> Any:
    """An answer as it also comes out of a journal, so that it does not matter whether it was written down.

    >>> _plain((np.float32(0.5), [np.int64(3), True], None))
    [0.5, [3, True], None]
    """
    if isinstance(answer, (np.generic, np.ndarray)):
        return answer.tolist()
    return [_plain(each) for each in answer] if isinstance(answer, (list, tuple)) else answer
