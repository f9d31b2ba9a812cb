"""Answers kept up to a budget in bytes, counted by hand."""

import threading
from dataclasses import dataclass

import numpy as np
import pytest
import torch

from attnviz.ui.memo import Memo, bytes_of


def counted(budget, most=32):
    made = []

    def make(size, *, progress=None):
        made.append(size)
        return np.zeros(size, np.uint8)

    return Memo(make, budget, most=most, aside="progress"), made


def test_the_least_recently_used_goes_first():
    memo, made = counted(budget=100)
    for size in (40, 50, 40, 30):  # 40 is used again before 30 takes the place of 50
        memo(size)
    assert made == [40, 50, 30]
    assert [memo.has(size) for size in (40, 50, 30)] == [True, False, True]
    assert memo.nbytes == 70


def test_the_newest_stays_alone_over_the_budget_and_goes_with_the_next():
    memo, _ = counted(budget=100)
    memo(10)
    assert memo(101) is memo(101)
    assert memo.nbytes == 101
    memo(20)
    assert memo.nbytes == 20


def test_small_answers_are_bounded_by_number():
    memo, made = counted(budget=100, most=3)
    for size in (1, 2, 3, 4, 1):
        memo(size)
    assert made == [1, 2, 3, 4, 1]


def test_who_watches_makes_no_difference():
    memo, made = counted(budget=100)
    assert memo(5, progress=print) is memo(5, progress=len)
    assert memo.has(5) and not memo.has(6)
    assert made == [5]


def test_what_fails_is_not_kept():
    memo = Memo(lambda: 1 / 0, 100)
    with pytest.raises(ZeroDivisionError):
        memo()
    assert not memo.has() and memo.nbytes == 0


def test_threads_leave_it_whole():
    memo, _ = counted(budget=300)
    every = [
        threading.Thread(target=lambda n=n: [memo(i % 90 + 1) for i in range(n, n + 400)])
        for n in range(4)
    ]
    for thread in every:
        thread.start()
    for thread in every:
        thread.join(30)
    kept = [size for size in range(1, 91) if memo.has(size)]
    assert memo.nbytes == sum(kept) <= 300


def test_bytes_of_what_answers_are_made_of():
    @dataclass
    class Map:
        values: object
        title: str

    assert bytes_of(Map(np.zeros((3, 4), np.float32), "map")) == 51
    assert bytes_of({1: [torch.zeros(5), b"1234"], 2: (7, None)}) == 24
