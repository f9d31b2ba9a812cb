"""One at a time, fair between visitors; threads stand for the page's runs."""

import threading
from collections import defaultdict, deque

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnviz.errors import Busy
from attnviz.ui import turns
from attnviz.ui.turns import GRACE, Place, Turns


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    monkeypatch.setattr(turns, "LOOK", 0.01)


class Gone(BaseException):
    """As Streamlit's own, where a browser was closed or a widget moved."""


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


class Visitors:
    """Threads that join the line in a known order, and note in which they are served."""

    def __init__(self, line):
        self.line, self.served, self.threads = line, [], []
        self.errors, self.stay = {}, defaultdict(lambda: lambda place: None)

    def join(self, visitor):
        """Gives control back once the visitor stands in the line, or was refused."""
        before = self.line.waiting
        thread = threading.Thread(target=self._visit, args=(visitor,), daemon=True)
        self.threads.append(thread)
        thread.start()
        with self.line._changed:
            there = lambda: self.line._count() > before or not thread.is_alive()  # noqa: E731
            assert self.line._changed.wait_for(there, 10)
        return thread

    def _visit(self, visitor):
        try:
            with self.line.turn(visitor, lambda place: self.stay[visitor](place)):
                self.served.append(visitor)
        except BaseException as error:
            self.errors[visitor] = error
        with self.line._changed:
            self.line._changed.notify_all()

    def leave(self, thread, visitor):
        """The visitor's browser is closed, or the run is cut off."""

        def go(place):
            raise Gone

        self.stay[visitor] = go
        thread.join(10)
        self.stay[visitor] = lambda place: None
        assert isinstance(self.errors.pop(visitor), Gone)

    def all_done(self):
        for thread in self.threads:
            thread.join(10)
            assert not thread.is_alive()
        return "".join(self.served)


def test_never_two_at_once():
    line, inside, most = Turns(), [], []

    def work(visitor):
        for _ in range(25):
            with line.turn(visitor):
                inside.append(visitor)
                most.append(len(inside))
                inside.pop()

    threads = [threading.Thread(target=work, args=(name,)) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert most == [1] * 200
    assert line.waiting == 0


def test_who_has_much_to_ask_gets_one_turn_a_round():
    line = Turns()
    visitors = Visitors(line)
    with line.turn("host"):
        for visitor in "aaaabca":
            visitors.join(visitor)
        assert line.waiting == 7
    assert visitors.all_done() == "abcaaaa"


def by_rounds(asked):
    """The slow twin: visitors stand in a circle, in the order in which they came."""
    circle, left, served = deque(dict.fromkeys(asked)), defaultdict(int), ""
    for visitor in asked:
        left[visitor] += 1
    while circle:
        visitor = circle.popleft()
        served += visitor
        left[visitor] -= 1
        if left[visitor]:
            circle.append(visitor)
    return served


@settings(max_examples=20, deadline=None)
@given(st.text("abcd", min_size=1, max_size=9))
def test_rounds_and_places_are_those_of_a_circle(asked):
    line = Turns()
    visitors = Visitors(line)
    with line.turn("host"):
        for visitor in asked:
            visitors.join(visitor)
        with line._changed:
            waiting = [turn for seat in line._line.values() for turn in seat.turns]
        ahead = sorted(line._place(turn).ahead for turn in waiting)
        assert ahead == list(range(1, len(asked) + 1))
        order = sorted(waiting, key=lambda turn: line._place(turn).ahead)
        assert "".join(turn.visitor for turn in order) == by_rounds(asked)
    assert visitors.all_done() == by_rounds(asked)


def test_a_full_line_refuses_politely_and_takes_others_when_one_has_gone():
    line = Turns(longest=2)
    visitors = Visitors(line)
    with line.turn("host"):
        visitors.join("a")
        second = visitors.join("b")
        visitors.join("c")
        assert str(visitors.errors.pop("c")) == (
            "The model is busy, and 2 are waiting for it already: no more can. Try again in about"
            " 1 s."
        )
        visitors.leave(second, "b")
        assert line.waiting == 1
        visitors.join("d")
        assert isinstance(visitors.errors["d"], Busy)  # b's place is kept for a moment
        visitors.join("b")
    assert visitors.all_done() == "ab"


def test_a_line_of_nobody_serves_who_need_not_wait():
    line = Turns(longest=0)
    with line.turn("a"):
        visitors = Visitors(line)
        visitors.join("b")
        assert isinstance(visitors.errors["b"], Busy)
    with line.turn("b"):
        pass


def test_patience_ends_and_the_place_is_free():
    clock = Clock()
    line = Turns(patience=60, clock=clock)

    def wait(place):
        clock.now += 25

    with (
        line.turn("host"),
        pytest.raises(Busy, match="your turn has not come in 60 s"),
        line.turn("a", wait),
    ):
        pytest.fail("served beside another")
    assert clock.now == 75
    clock.now += GRACE + 1
    with line.turn("b"):
        assert line.waiting == 0


@pytest.mark.parametrize(("away", "served"), [(GRACE - 1, "abc"), (GRACE + 1, "bca")])
def test_a_place_is_kept_for_a_moment(away, served):
    clock = Clock()
    line = Turns(clock=clock)
    visitors = Visitors(line)
    with line.turn("host"):
        first = visitors.join("a")
        visitors.join("b")
        visitors.join("c")
        visitors.leave(first, "a")
        clock.now += away
        visitors.join("a")
    assert visitors.all_done() == served


def test_who_left_holds_nobody_up():
    line = Turns()
    visitors = Visitors(line)
    with line.turn("host"):
        first = visitors.join("a")
        visitors.join("b")
        visitors.leave(first, "a")
    assert visitors.all_done() == "b"


def test_work_that_fails_frees_the_place():
    line = Turns()
    with pytest.raises(ZeroDivisionError), line.turn("a"):
        1 / 0  # noqa: B018
    with line.turn("b"):
        pass


def test_long_work_lets_others_in_between_and_is_alone_again_after_them():
    line = Turns()
    visitors = Visitors(line)
    with line.turn("long") as turn:
        visitors.served.append("1")
        turn.let_others()  # nobody is there
        visitors.join("a")
        visitors.join("b")
        turn.let_others()
        visitors.served.append("2")
        visitors.join("c")
    assert visitors.all_done() == "1ab2c"


def test_long_work_that_is_given_up_meanwhile_ends_nobody_elses_turn():
    line, go_on, inside = Turns(), threading.Event(), threading.Event()

    def other():
        with line.turn("other"):
            inside.set()
            go_on.wait(10)

    def leave(place):
        assert inside.wait(10)
        raise Gone

    thread = threading.Thread(target=other, daemon=True)

    def long_work():
        with line.turn("long", leave) as turn:
            thread.start()
            with line._changed:
                assert line._changed.wait_for(lambda: line._count() == 1, 10)
            turn.let_others()

    with pytest.raises(Gone):
        long_work()
    assert line._running.visitor == "other"
    go_on.set()
    thread.join(10)
    assert line._running is None and line.waiting == 0


def test_what_is_said_of_a_place():
    assert Place(1, 0.4).words == "Waiting: you are next"
    assert Place(1, 2.4).words == "Waiting: you are next, about 2 s to go"
    assert Place(3, 4.0).words == "Waiting: you are number 3 in line, about 4 s to go"


def test_how_long_it_will_take_is_known_from_turns_before():
    clock = Clock()
    line, told = Turns(clock=clock), []
    for took in (2.0, 4.0):
        with line.turn("host"):
            clock.now += took
    mean = 0.8 * 2 + 0.2 * 4

    def wait(place):
        told.append(place)
        raise Gone

    with line.turn("host"), pytest.raises(Gone), line.turn("a", wait):
        pytest.fail("served beside another")
    assert told == [Place(1, pytest.approx(mean))]
