"""One model and eight threads: each capture is what a single thread would get."""

import threading

import pytest
import torch
from conftest import small_input, small_vit

import attnviz

THREADS = 8


@pytest.mark.parametrize(("target", "each"), [(None, 50), (2, 5)])
def test_captures_of_eight_threads_are_those_of_one(target, each):
    vit = small_vit()
    inputs = [small_input(seed) for seed in range(10)]

    def seen(number):
        record = attnviz.observe(vit, inputs[number], target=target)
        maps = [layer.probs() for layer in record.layers]
        return torch.cat([part.ravel() for part in maps]), record.predictions

    alone, got = [seen(number) for number in range(len(inputs))], {}
    begin = threading.Barrier(THREADS)

    def work(thread):
        begin.wait(30)
        for turn in range(each):
            number = (3 * thread + 7 * turn) % len(inputs)
            got[thread, turn] = number, seen(number)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert len(got) == THREADS * each
    right = [
        torch.equal(maps, alone[number][0]) and says == alone[number][1]
        for number, (maps, says) in got.values()
    ]
    assert sum(right) == THREADS * each
    assert len({tuple(maps.tolist()) for maps, _ in alone}) == len(inputs)
