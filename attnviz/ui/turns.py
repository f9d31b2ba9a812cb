"""One piece of heavy work at a time, and a line of those who wait for it, fair between visitors."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Condition, get_ident
from time import monotonic

from attnviz.errors import Busy

LOOK = 0.5
"""Seconds between two looks at whether somebody who waits is still there."""

GRACE = 5.0
"""Seconds for which a place is kept free for a visitor who left it: who moves a widget while they
wait leaves the line, and is back in it at once."""

Waiting = Callable[["Place"], object]
"""Told of the place now and then; may raise, to leave the line."""


@dataclass(frozen=True)
class Place:
    """Where in the line one is."""

    ahead: int
    """Turns that come before; the one that is running counts."""
    seconds: float
    """What these will take, by what turns took lately."""

    @property
    def words(self) -> str:
        """For whoever waits."""
        soon = f", about {self.seconds:.0f} s to go" if self.seconds >= 1 else ""
        if self.ahead <= 1:
            return f"Waiting: you are next{soon}"
        return f"Waiting: you are number {self.ahead} in line{soon}"


@dataclass(eq=False)
class Turn:
    """One piece of work of one visitor's."""

    visitor: Hashable
    line: Turns
    waiting: Waiting

    def let_others(self) -> None:
        """Between two parts of long work: go to the end of the line, if there is one."""
        self.line._let_others(self)


@dataclass
class _Seat:
    """A visitor's place in the line."""

    turns: deque[Turn] = field(default_factory=deque)
    left: float = 0.0
    """When the last of them went without its turn."""


class Turns:
    """Visitors are served one after the other, each once before any of them a second time.

    Nobody can starve others: whoever has much to ask gets one turn a round.
    """

    def __init__(
        self,
        longest: int = 64,
        patience: float = 120.0,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """With at most `longest` who wait, each for `patience` seconds at most."""
        self._longest, self._patience, self._clock = longest, patience, clock
        self._line: OrderedDict[Hashable, _Seat] = OrderedDict()
        self._running: Turn | None = None
        self._began = self._mean = 0.0
        self._changed = Condition()

    @contextmanager
    def turn(
        self, visitor: Hashable = None, waiting: Waiting = lambda place: None
    ) -> Iterator[Turn]:
        """Wait for one's turn, and have it until the context ends.

        Args:
            visitor: who asks; if left out, this thread.
            waiting: told of one's place twice a second; what it raises gives the place up.

        Raises:
            Busy: the line is full, or patience is at its end.
        """
        turn = Turn(get_ident() if visitor is None else visitor, self, waiting)
        self._join(turn)
        self._wait(turn)
        try:
            yield turn
        finally:
            self._end(turn)

    @property
    def waiting(self) -> int:
        """How many turns are waited for."""
        with self._changed:
            return self._count()

    def _count(self) -> int:
        return sum(len(seat.turns) for seat in self._line.values())

    def _join(self, turn: Turn) -> None:
        with self._changed:
            self._forget_absent()
            seat = self._line.get(turn.visitor)
            # A place that is kept for somebody is taken, for all others.
            taken = sum(max(len(each.turns), 1) for each in self._line.values())
            mine = seat is not None and not seat.turns
            free = self._running is None and not self._count()
            if taken >= self._longest and not mine and not free:
                line = f"{self._longest} are waiting for it already: no more can"
                raise Busy(
                    f"The model is busy, and {line if self._longest else 'nobody can wait here'}."
                    f" Try again in about {max(1, round(self._mean * taken))} s."
                )
            self._line.setdefault(turn.visitor, _Seat()).turns.append(turn)
            self._changed.notify_all()

    def _wait(self, turn: Turn) -> None:
        since = self._clock()
        try:
            while not self._take(turn):
                turn.waiting(self._place(turn))
                if self._clock() - since > self._patience:
                    raise Busy(
                        f"The model is busy: your turn has not come in {self._patience:.0f} s. Try"
                        " again later."
                    )
        except BaseException:
            self._leave(turn)
            raise

    def _take(self, turn: Turn) -> bool:
        """Whether it is this one's turn, within a moment."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._is_next(turn), LOOK):
                return False
            seat = self._line.pop(turn.visitor)
            seat.turns.popleft()
            if seat.turns:  # one a round: the others of this visitor's are at the end
                self._line[turn.visitor] = seat
            self._running, self._began = turn, self._clock()
            return True

    def _is_next(self, turn: Turn) -> bool:
        if self._running is not None:
            return False
        return turn is next(seat.turns[0] for seat in self._line.values() if seat.turns)

    def _place(self, turn: Turn) -> Place:
        with self._changed:
            ahead, passed = int(self._running is not None), False
            own = self._line[turn.visitor]
            rounds = own.turns.index(turn)
            for seat in self._line.values():
                passed = passed or seat is own
                ahead += min(len(seat.turns), rounds + (not passed))
            return Place(ahead, ahead * self._mean)

    def _leave(self, turn: Turn) -> None:
        with self._changed:
            seat = self._line[turn.visitor]
            seat.turns.remove(turn)
            seat.left = self._clock()
            self._changed.notify_all()

    def _end(self, turn: Turn) -> None:
        with self._changed:
            if self._running is not turn:  # it was given up while it let others pass
                return
            took = self._clock() - self._began
            self._mean = took if not self._mean else 0.8 * self._mean + 0.2 * took
            self._running = None
            self._forget_absent()
            self._changed.notify_all()

    def _let_others(self, turn: Turn) -> None:
        if not self.waiting:
            return
        self._end(turn)
        with self._changed:  # whoever is in it already is never refused
            self._line.setdefault(turn.visitor, _Seat()).turns.append(turn)
        self._wait(turn)

    def _forget_absent(self) -> None:
        """Places that were kept long enough for somebody who did not come back."""
        now = self._clock()
        for visitor, seat in list(self._line.items()):
            if not seat.turns and now - seat.left > GRACE:
                del self._line[visitor]
