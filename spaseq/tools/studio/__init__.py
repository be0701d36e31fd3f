"""The studio: a page on this machine with a query, its events, its matches and its evaluation; both languages.

* `options` has the words of `studio`, for both commands, and starts it.
* `setups` are the queries that the page can begin with: the files of the command line, the examples.
* `server` answers HTTP; `requests` checks the browser's requests.
* `workers` are the processes that check and run queries, and can be stopped. `worker` is the program of such a process,
  `answers` has its results as JSON, and `replies` are answers that need no language.
* `language` is the interface of a language; each command has a module `cli.studio` with it.

The page itself, HTML, CSS and JavaScript, is in the folder `page`; docs/studio.md describes all of it.
"""

from __future__ import annotations

from spaseq.tools.studio.language import Found, Inputs, Language, language
from spaseq.tools.studio.options import add_studio

__all__ = ["Found", "Inputs", "Language", "add_studio", "language"]
