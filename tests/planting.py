"""What a change of the stream, before a layer, changed in that layer's map."""

import numpy as np
import torch


def what_changed(first, second) -> tuple[set[int], set[int]]:
    """The keys that hold another value, and the queries that ask something else.

    A row that merely sees a changed key shifts alike in all other columns, in logarithms, because
    its sum is 1; the row of a changed query does not.
    """
    columns = (first.values != second.values).any(-1).any(0)
    before, after = first.probs().double(), second.probs().double()
    shift = after.clamp_min(1e-30).log() - before.clamp_min(1e-30).log()
    shift[before == 0] = torch.nan
    asking = set()
    for token in range(shift.shape[1]):
        row = shift[:, token, ~columns]
        row = row[:, ~row.isnan().all(0)].numpy()
        if row.shape[1] > 1 and np.max(np.nanmax(row, 1) - np.nanmin(row, 1)) > 1e-3:
            asking.add(token)
    return set(columns.nonzero().flatten().tolist()), asking
