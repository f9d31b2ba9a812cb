"""What is looked through for garbage after each run: not what is there for good."""

from __future__ import annotations

import gc


def keep_out_of_sweeps() -> None:
    """Take all that lives now out of the sweeps; what was taken out before is swept once more.

    Streamlit sweeps after every run. Torch, timm and a model are half a million objects to look
    through, nearly all of them there for good: 0.27 s of a processor after each click, while the
    answer waits to be sent. Without them it is a millisecond.
    """
    gc.unfreeze()
    gc.collect()  # a model that was let go, say, whose parts know each other
    gc.freeze()
