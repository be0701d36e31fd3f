"""What the fuzz target runs."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["Input"]


@dataclass(frozen=True, slots=True)
class Input:
    """What is run: `how` says by which check (`checks`), with the `arguments` of a command, or what else it needs, and
    the files that lie in the folder. `stdin` is standard input."""

    how: str
    arguments: tuple[str, ...] = ()
    files: Mapping[str, bytes] = field(default_factory=dict)
    stdin: bytes = b""
    kind: str = ""
    seed: int = 0

    def to_json(self) -> str:
        """As a find is written."""
        coded = {name: base64.b64encode(data).decode() for name, data in self.files.items()}
        shown = {name: data.decode("utf-8", "backslashreplace")[:2000] for name, data in self.files.items()}
        whole = {"kind": self.kind, "seed": self.seed, "how": self.how, "arguments": self.arguments, "files": coded,
                 "stdin": base64.b64encode(self.stdin).decode(), "shown": shown}  # fmt: skip
        return json.dumps(whole, indent=1)

    @staticmethod
    def of_json(text: str) -> Input:
        whole = json.loads(text)
        files = {name: base64.b64decode(coded) for name, coded in whole["files"].items()}
        stdin = base64.b64decode(whole["stdin"])
        return Input(whole["how"], tuple(whole["arguments"]), files, stdin, whole["kind"], whole["seed"])
