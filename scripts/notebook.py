"""Execute docs/notebook.ipynb anew and keep what it shows; `make notebook`."""

from __future__ import annotations

import base64
import os
from io import BytesIO
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode
from PIL import Image

PATH = Path(__file__).parents[1] / "docs" / "notebook.ipynb"

QUALITY = 78
"""Of a picture that is kept, as JPEG: the file is read with the code, and stays small."""


def executed(notebook: NotebookNode) -> NotebookNode:
    """The same notebook, run from its own folder by a new kernel; raises what a cell raises."""
    os.environ["PLOTLY_RENDERER"] = "plotly_mimetype"  # else Plotly's whole library is put in
    place = {"metadata": {"path": str(PATH.parent)}}
    NotebookClient(notebook, timeout=300, record_timing=False, resources=place).execute()
    return notebook


def lean(notebook: NotebookNode) -> NotebookNode:
    """The same with each picture once, as JPEG, and nothing of the machine that ran it."""
    notebook.metadata.pop("language_info", None)
    for cell in notebook.cells:
        if cell.cell_type == "code":  # warnings name the files that they are from
            cell.outputs = [each for each in cell.outputs if each.get("name") != "stderr"]
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if "image/png" in data:
                data["image/jpeg"] = _jpeg(data.pop("image/png"))
                data.pop("text/html", None)  # the same picture, with words
                data.pop("text/plain", None)  # an address in memory
    return notebook


def _jpeg(png: str) -> str:
    file = BytesIO()
    picture = Image.open(BytesIO(base64.b64decode(png))).convert("RGB")
    picture.save(file, "JPEG", quality=QUALITY, optimize=True)
    return base64.b64encode(file.getvalue()).decode()


def main() -> None:
    nbformat.write(lean(executed(nbformat.read(PATH, as_version=4))), PATH)
    print(f"{PATH.name}: {PATH.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
