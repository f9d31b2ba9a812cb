"""Many pictures by one request: as figures, or as one table; it goes on where it stopped.

`pictures` says which, `request` what is asked of each, `journal` what is done; a `worker` opens
pictures and gives each one's `result`, on this machine by `line` or elsewhere by a `cluster`; an
`output` keeps it, and `run` puts these together.
"""

from attnviz.batch.pictures import pictures_in
from attnviz.batch.request import Request
from attnviz.batch.run import Engine, Report, here, run

__all__ = ["Engine", "Report", "Request", "here", "pictures_in", "run"]
