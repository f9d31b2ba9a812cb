"""Writes docs/models.md anew from the tables in models/catalogue.py."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from models import catalogue  # noqa: E402

(ROOT / "docs" / "models.md").write_text(catalogue.page(), "utf-8")
