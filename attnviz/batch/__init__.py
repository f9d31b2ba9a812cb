"""Many pictures by one request: as figures, or as one table; it goes on where it stopped.

`pictures` says which, `request` what is asked of each, `journal` what is done; a `worker` opens
pictures and gives each one's `result`, an `output` keeps it, and `run` puts these together.
"""

from attnviz.batch.pictures import pictures_in
from attnviz.batch.request import Request
from attnviz.batch.run import Report, here, run

__all__ = ["Report", "Request", "here", "pictures_in", "run"]
