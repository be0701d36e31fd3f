"""The notebooks of the examples, executed: `python -m tests.support.notebooks` writes their outputs anew."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

__all__ = ["NOTEBOOKS", "executed", "read", "shown"]

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "examples" / "notebooks").glob("*.ipynb"))


def read(path: Path) -> Any:
    """A notebook as it is in its file."""
    return nbformat.read(path, as_version=4)


def executed(path: Path) -> Any:
    """A notebook, run in its folder, without the parts that differ from run to run."""
    book = read(path)
    NotebookClient(book, timeout=300, resources={"metadata": {"path": str(path.parent)}}, record_timing=False).execute()
    book.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    for number, cell in enumerate(book.cells):
        cell.id, cell.metadata = f"cell-{number}", {}
        for output in cell.get("outputs", ()):
            if len(output.get("data", {})) > 1:
                output.data.pop("text/plain", None)
    return book


def shown(cell: Any) -> list[Any]:
    """The output of a cell: texts, tables, and of drawings the words, since their layout is that of a Graphviz."""
    return [
        {kind: _drawn_words(text) for kind, text in output.data.items()}
        if "data" in output
        else output.get("text", output)
        for output in cell.get("outputs", ())
    ]


def _drawn_words(text: str) -> str:
    return re.sub(r"<svg.*?</svg>", lambda svg: " ".join(sorted(re.findall(r">([^<>]*\S[^<>]*)<", svg[0]))), text,
                  flags=re.DOTALL)  # fmt: skip


if __name__ == "__main__":
    for file in NOTEBOOKS:
        nbformat.write(executed(file), file)
