"""The `ceql` command.

`main` has the commands on matches and `alerting` those on alerts and forecasts; `arguments` is what they share.
`formats` is the table of formats, `writers` write matches in each, `pictures` draw them.

* `formats` (`ALERTS`, `FORECASTS`, `MATCHES`): The formats of `ceql run`: one row and one writer each.
* `writers`: Writes matches in the formats of the command line.
* `pictures` (`plot_matches`): Matches as a picture: `ceql plot`.
* `arguments` (`EVALUATOR_HELP`, `add_events`, `asked`, `compiled`, `reading`, `report`): What the commands of `ceql`
  share: the arguments that name a query and its events, and what is said about a run.
* `alerting` (`add_alerts`, `write_count`, `write_csv`, `write_jsonl`, `write_text`): The commands `ceql alert` and
  `ceql forecast`: whether a query matches now, and when it will.
* `main` (`entry`, `main`): The `ceql` command: run, check and explain CEQL queries; alerts and forecasts
  (`ceql.cli.alerting`).
"""

__all__ = ["alerting", "arguments", "formats", "main", "pictures", "writers"]
