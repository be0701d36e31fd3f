"""The `spaseq` command.

`main` has the commands, `options` their arguments. `inputs` opens their input, `output` writes their results,
`distributed` runs them on Spark.

Modules:

* `distributed`: `spaseq run --engine spark`: the same matches, found by Spark in local mode.
* `formats`: The formats of `spaseq run`: those that both commands share, and its own.
* `inputs`: The inputs of `--stream`, `--streams` and `--kb`.
* `knowledge`: `spaseq knowledge`: background knowledge saved as a file, and the contents of one.
* `network`: `spaseq run NETWORK.toml`: queries that read the graphs which others construct.
* `options`: The words of the `spaseq` command.
* `output`: The results of `spaseq run` as writers of formats ask for them, and writers of its own formats.
* `main`: The `spaseq` command: run, check, explain, plot.
* `studio`: SPAseq in the studio (`spaseq.tools.studio`).
"""
