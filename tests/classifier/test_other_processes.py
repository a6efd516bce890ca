"""A loaded model goes to other processes whole: its arrays are sent, not the name of a file or an open handle."""

import multiprocessing
import pickle
import shutil

import numpy as np
import pytest
from joblib import Parallel, delayed
from sklearn.model_selection import cross_val_score

import ramify
from ramify import TextClassifier
from ramify.systems import SYSTEMS

WORDS = ("apple", "pear", "rye", "tea")
TEXTS = [f"{word} {word}s " + " ".join(f"{word}{n}number{i}" for i in range(100)) for word in WORDS for n in range(400)]
LABELS = [label for label in ("food/fruit/apple", "food/fruit/pear", "food/bread", "drink") for _ in range(400)]
LARGE = 1 << 20  # bytes of an array from which joblib tries to send a file name


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    place = tmp_path_factory.mktemp("model") / "model"
    TextClassifier("nb").fit(TEXTS, LABELS).save(place)
    found = ramify.load(place)
    assert found.learner_.counts_.data.nbytes > LARGE
    shutil.rmtree(place)  # nothing can be read again
    return found


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["loky", "multiprocessing"])
def test_joblib_workers_predict_as_this_process_does(loaded, backend):
    parts = [TEXTS[start::2] for start in range(2)]
    found = Parallel(n_jobs=2, backend=backend, timeout=300)(delayed(loaded.predict)(part) for part in parts)
    for part, predicted in zip(parts, found, strict=True):
        assert predicted.tolist() == loaded.predict(part).tolist()


@pytest.mark.slow
@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_multiprocessing_pools_predict_as_this_process_does(loaded, method):
    with multiprocessing.get_context(method).Pool(2) as pool:
        found = pool.map_async(loaded.predict, [TEXTS[:10], TEXTS[-10:]]).get(300)
    assert [part.tolist() for part in found] == [loaded.predict(TEXTS[:10]).tolist(), loaded.predict(TEXTS[-10:]).tolist()]


@pytest.mark.slow
def test_cross_validation_of_a_loaded_model_in_two_processes(loaded):
    assert cross_val_score(loaded, TEXTS[::20], LABELS[::20], n_jobs=2, cv=2).shape == (2,)


@pytest.mark.parametrize("private", [False, True])
@pytest.mark.parametrize("system", SYSTEMS)
def test_a_loaded_model_of_every_system_is_pickled_without_its_files(tmp_path, system, private):
    TextClassifier(system).fit(TEXTS[::40], LABELS[::40]).save(tmp_path / "model")
    found = ramify.load(tmp_path / "model", private=private)
    sent = pickle.dumps(found)
    shutil.rmtree(tmp_path / "model")
    np.testing.assert_array_equal(pickle.loads(sent).predict_proba(TEXTS[:9]), found.predict_proba(TEXTS[:9]))
