"""PECOS's native tf-idf of words: ``python -m peers.pecos_vectorizer TEXTS --threads 2``.

TEXTS is a JSON list of texts. Each line on the standard input, ``fit`` or ``transform``, is answered by one of JSON.
"""

import argparse
import json
import sys
from importlib.metadata import version
from pathlib import Path
from time import perf_counter, process_time

from pecos.utils.featurization.text.vectorizers import Vectorizer

WORDS = {"ngram_range": [1, 1], "analyzer": "word", "max_df_ratio": 1.0, "add_one_idf": True}  # the last as in scikit-learn


def main() -> None:
    """Answer requests until there are no more."""
    given = _parse()
    texts = json.loads(given.texts.read_text())
    model = None
    for request in sys.stdin:
        start, cpu_start = perf_counter(), process_time()
        if request.strip() == "fit":
            model = Vectorizer.train(texts, config=_config(given.threads))
        X = model.predict(texts, threads=given.threads)  # there is no way to learn and turn at once
        facts = {
            "seconds": perf_counter() - start,
            "cpu": process_time() - cpu_start,
            "features": X.shape[1],
            "nonzeros": int(X.nnz),
            "version": version("libpecos"),
        }
        print(json.dumps(facts), flush=True)


def _config(threads):
    return {"type": "tfidf", "kwargs": {"base_vect_configs": [{**WORDS, "threads": threads}], "threads": threads}}


def _parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("texts", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    main()
