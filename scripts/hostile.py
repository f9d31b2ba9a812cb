"""Opens every hostile file of the tests, and writes the table of docs/security.md."""

import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from hostile_run import HEADER, run, table  # noqa: E402

PAGE = ROOT / "docs" / "security.md"

with TemporaryDirectory() as folder:
    made = table(run(Path(folder)))
before = PAGE.read_text("utf-8")
PAGE.write_text(re.sub(re.escape(HEADER) + r"(\|.*\n)*", lambda _: made, before), "utf-8")
print(made)
