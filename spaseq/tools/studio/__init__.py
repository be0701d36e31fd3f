"""The studio: a page on this machine with a query, its events, its matches and how it is evaluated; both languages.

`options` has the words of `studio`, for both commands, and starts it. `setups` is what the page begins with: the files
of the command line, the examples. `server` answers HTTP; `requests` checks what the browser sends. Queries are checked
and run in processes of their own (`workers`), which can be stopped: `worker` is what runs there, `answers` what it
says, as JSON; `replies` are answers that need no language. `language` is what a language has to offer; each command has
a module `cli.studio` with it. The page itself, HTML, CSS and JavaScript, is in the folder `page`; docs/studio.md
describes all of it.
"""

from __future__ import annotations

from spaseq.tools.studio.language import Found, Inputs, Language, language
from spaseq.tools.studio.options import add_studio

__all__ = ["Found", "Inputs", "Language", "add_studio", "language"]
