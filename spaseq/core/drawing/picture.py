"""A drawing of an automaton to look at: in a notebook, in a file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from spaseq.core.drawing.diagram import Diagram
from spaseq.core.drawing.dot import to_dot
from spaseq.core.drawing.layout import to_svg
from spaseq.core.errors import OptionError
from spaseq.core.files.beside import save_text


@dataclass(frozen=True, slots=True, repr=False)
class Picture:
    """The result of `query.picture()`; a notebook shows it."""

    diagram: Diagram

    @property
    def dot(self) -> str:
        """In the language of Graphviz."""
        return to_dot(self.diagram)

    def svg(self) -> str:
        """As an SVG document. Raises `OptionError` if there is no Graphviz (the extra `draw`)."""
        return to_svg(self.diagram)

    def save(self, path: str | Path) -> None:
        """Write it to a file, `.svg` or `.dot`. Raises `OptionError` for another ending, and as `svg` does."""
        file = Path(path)
        match file.suffix.lower():
            case ".svg":
                text = self.svg()
            case ".dot" | ".gv":
                text = self.dot
            case _:
                raise OptionError(f"cannot tell from {path} what picture to make", "name it with .svg or .dot")
        save_text(path, text)

    def __repr__(self) -> str:
        nodes, edges = len(self.diagram.nodes), len(self.diagram.edges)
        return f"<Picture of {nodes} states and {edges} transitions; svg(), dot, save(path)>"

    def _repr_svg_(self) -> str:
        return self.svg()
