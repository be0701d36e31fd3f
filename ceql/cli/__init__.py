"""The `ceql` command.

`main` has the commands about queries and matches, `alerting` those for alerts and forecasts; both use `arguments`.
`formats` is the table of output formats, `output` and `rows` give matches to their writers.

* `formats`: The output formats of the `ceql` commands.
* `output`: The matches of `ceql run` in the shapes that writers of formats ask for.
* `rows`: The rows that SELECT computes of matches, in the shapes that writers of formats ask for.
* `timed_out`: `ceql run --timed-out FILE`: the partial matches that time out, written beside the matches.
* `network`: `ceql run NETWORK.toml`: several queries, of which some read the matches of others.
* `arguments`: The arguments that name a query and its events, for all commands of `ceql`.
* `alerting`: The commands `ceql alert` and `ceql forecast`: whether a query matches now, and when it will.
* `main`: The `ceql` command: run, check and explain CEQL queries; alerts and forecasts (`ceql.cli.alerting`).
* `studio`: CEQL in the studio (`spaseq.tools.studio`).
"""
