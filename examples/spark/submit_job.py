"""A SPAseq query as a batch job.

    spark-submit --master 'local[2]' examples/spark/submit_job.py QUERY.rq OUTPUT NAME=GLOB … [IRI=KNOWLEDGE …]

    cd examples/smart-grid
    spark-submit --master 'local[2]' ../spark/submit_job.py query.rq /tmp/matches \
        S1=power.nq S2=weather.nq S3=storage.nq http://smartgrid.org/db=kb.ttl

Names of streams are told from IRIs of knowledge by their colon. The matches are written as Parquet.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import SparkSession

import spaseq.spark
from spaseq.core.errors import SpaseqError


def main(query: str, output: str, *given: str) -> int:
    pairs = [text.rsplit("=", 1) for text in given]
    streams = {name: path for name, path in pairs if ":" not in name}
    kb = {name: path for name, path in pairs if ":" in name}
    spark = SparkSession.builder.appName("spaseq").getOrCreate()
    try:
        compiled = spaseq.compile(Path(query).read_text("utf-8"))
        print(spaseq.spark.explain(compiled))
        matches = spaseq.spark.run(compiled, spark, streams, kb)
        with spaseq.spark.clear_errors():
            matches.write.mode("overwrite").parquet(output)
    except SpaseqError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    print(f"{spark.read.parquet(output).count()} matches in {output}")
    return 0


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
