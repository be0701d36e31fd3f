"""The `ceql` command.

`main` has the commands about queries and matches, `alerting` those for alerts and forecasts; both use `arguments`.
`formats` is the table of output formats, `output` gives matches to their writers.

* `formats` (`ALERTS`, `FORECASTS`, `MATCHES`): The output formats of the `ceql` commands.
* `output` (`FoundMatches`, `clock`): The matches of `ceql run` in the shapes that writers of formats ask for.
* `arguments` (`EVALUATOR_HELP`, `add_events`, `asked`, `compiled`, `reading`, `remarks`, `report`): The arguments that
  name a query and its events, and the warnings and notes about a run; for all commands of `ceql`.
* `alerting` (`add_alerts`, `write_text`): The commands `ceql alert` and `ceql forecast`: a query's matches as they end,
  and forecasts of the next one.
* `main` (`entry`, `main`): The `ceql` command: run, check and explain CEQL queries; alerts and forecasts
  (`ceql.cli.alerting`).
* `studio` (`STUDIO`): CEQL in the studio (`spaseq.tools.studio`).
"""

__all__ = ["alerting", "arguments", "formats", "main", "output", "studio"]
