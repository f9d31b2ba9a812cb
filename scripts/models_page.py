"""Writes docs/models.md from the tables in models/, and with --table docs/models.csv as well."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from models import catalogue, census  # noqa: E402

DOCS = ROOT / "docs"
(DOCS / "models.md").write_text(catalogue.page(), "utf-8")
if "--table" in sys.argv:
    (DOCS / "models.csv").write_text(census.table(done=print), "utf-8")
