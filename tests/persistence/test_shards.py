"""Model directories with shards: taken over without a copy where possible, checked like every other file."""

import errno
import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

import ramify
from ramify.errors import InputError, ModelError
from ramify.persistence import (
    FORMAT_VERSION,
    LazyArrays,
    StoredModel,
    arrays,
    open_array_file,
    read_model,
    write_array_file,
    write_model,
)
from ramify.persistence.model_directory import MAX_SHARDS, sealed

TEXTS = [f"{word} {word}s and {other}" for word in ("apple", "pear", "bread", "tea", "milk") for other in ("one", "two", "six")]
LABELS = [label for label in ("food/fruit/apple", "food/fruit/pear", "food/bread", "drink/tea", "drink/milk") for _ in range(3)]


def part(number):
    return {"w": np.full(1000, number, dtype=np.float32), "n": np.asarray([number])}


def model_of(*shards):
    return StoredModel({"system": "x"}, {"features": [1]}, {"own": np.arange(3)}, shards)


def to_make(number):
    return LazyArrays(lambda: part(number))


@pytest.fixture
def saved(tmp_path):
    write_model(tmp_path / "model", model_of(*map(to_make, (1, 2, 3))))
    return tmp_path / "model"


@pytest.fixture(scope="module")
def classifier():
    return ramify.TextClassifier("hr-svm").fit(TEXTS, LABELS)


def shard(path, number=1):
    return path / f"weights-{number:05d}.safetensors"


def numbers_in(path):
    return [int(mapped.arrays["n"][0]) for mapped in read_model(path).shards]


def edit_manifest(path, change):
    manifest = json.loads((path / "manifest.json").read_text())
    change(manifest)
    manifest.pop("sha256")
    (path / "manifest.json").write_bytes(sealed(manifest))


# ---- writing and reading --------------------------------------------------------------------------------------------------


def test_shards_come_back_in_order_mapped_and_beside_the_other_arrays(saved):
    found = read_model(saved)
    assert [int(mapped.arrays["n"][0]) for mapped in found.shards] == [1, 2, 3]
    assert list(found.arrays) == ["own"]
    for mapped in found.shards:
        assert mapped.stamp is not None  # mapped, not read
        with pytest.raises(ValueError, match="read-only"):
            mapped.arrays["w"][0] = 1


def test_more_than_nine_shards_keep_their_order(tmp_path):
    write_model(tmp_path / "m", model_of(*map(to_make, range(120))))
    assert numbers_in(tmp_path / "m") == list(range(120))


def test_a_shard_is_made_only_when_its_turn_comes_and_given_up_then(tmp_path):
    alive, most = [], []

    class Large(np.ndarray):
        def __del__(self):
            alive.remove(self.number)

    def make(number):
        made = np.zeros(10).view(Large)
        made.number = number
        alive.append(number)
        most.append(len(alive))
        return {"w": made}

    write_model(tmp_path / "m", model_of(*(LazyArrays(lambda n=n: make(n)) for n in range(5))))
    assert len(most) == 5
    assert max(most) <= 2  # the last one may still be there while the next is made


def test_models_with_and_without_shards_have_the_same_format_version(saved, tmp_path):
    assert json.loads((saved / "manifest.json").read_text())["version"] == FORMAT_VERSION
    write_model(tmp_path / "plain", model_of())
    assert json.loads((tmp_path / "plain" / "manifest.json").read_text())["version"] == FORMAT_VERSION


def test_a_model_that_is_saved_elsewhere_or_again_shares_its_shards(saved, tmp_path):
    inode = shard(saved).stat().st_ino
    loaded = read_model(saved)
    for target in (tmp_path / "other", saved, saved, tmp_path / "other"):
        write_model(target, loaded)
        assert numbers_in(target) == [1, 2, 3]
        assert shard(target).stat().st_ino == inode
    assert not [entry for entry in tmp_path.iterdir() if entry.name.startswith(".")]


def test_where_no_hard_link_can_be_the_bytes_are_copied(saved, tmp_path, monkeypatch):
    monkeypatch.setattr(arrays.os, "link", lambda *_: (_ for _ in ()).throw(OSError(errno.EXDEV, "another disk")))
    monkeypatch.setattr(arrays, "CHUNK", 1000)
    write_model(tmp_path / "other", read_model(saved))
    assert numbers_in(tmp_path / "other") == [1, 2, 3]
    assert shard(tmp_path / "other").stat().st_ino != shard(saved).stat().st_ino
    assert shard(tmp_path / "other").read_bytes() == shard(saved).read_bytes()
    assert shard(tmp_path / "other").stat().st_mode == (tmp_path / "other" / "weights.safetensors").stat().st_mode


def test_a_loaded_model_keeps_its_shards_when_its_directory_goes_or_becomes_another(saved, tmp_path):
    loaded = read_model(saved)
    write_model(saved, model_of(*map(to_make, (7, 8, 9))))  # under the old names there are now other shards
    write_model(tmp_path / "first", loaded)
    assert numbers_in(tmp_path / "first") == [1, 2, 3]
    shutil.rmtree(saved)
    write_model(tmp_path / "second", loaded)
    assert numbers_in(tmp_path / "second") == [1, 2, 3]


def test_a_link_in_the_place_of_a_shard_is_not_taken_over(saved, tmp_path):
    loaded = read_model(saved)
    write_array_file(tmp_path / "foreign", part(66))
    shard(saved).unlink()
    shard(saved).symlink_to(tmp_path / "foreign")
    write_model(tmp_path / "other", loaded)
    assert numbers_in(tmp_path / "other") == [1, 2, 3]
    with pytest.raises(ModelError, match="weights-00001.safetensors cannot be read"):
        read_model(saved)


def test_a_shard_that_was_changed_after_it_was_loaded_is_not_vouched_for(saved, tmp_path):
    loaded = read_model(saved)
    with open(shard(saved, 2), "r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"\x77")
    with pytest.raises(ModelError, match="shard 2 of the model was changed after it was loaded"):
        write_model(tmp_path / "other", loaded)
    assert not (tmp_path / "other").exists()


def test_who_may_read_a_directory_may_read_a_shard_that_has_come_to_it(tmp_path):
    (tmp_path / "private").mkdir(mode=0o700)
    write_array_file(tmp_path / "private" / "shard", part(1))
    (tmp_path / "private" / "shard").chmod(0o600)
    write_model(tmp_path / "model", model_of(open_array_file(tmp_path / "private" / "shard")))
    modes = {entry.stat().st_mode & 0o777 for entry in (tmp_path / "model").iterdir()}
    assert len(modes) == 1


def test_a_file_of_arrays_is_there_whole_or_not_at_all(tmp_path, monkeypatch):
    write_array_file(tmp_path / "shard", part(1))
    monkeypatch.setattr(arrays, "write_arrays", lambda *_: (_ for _ in ()).throw(OSError(errno.ENOSPC, "disk full")))
    with pytest.raises(ModelError, match="cannot write .*shard: disk full; the old file is unchanged"):
        write_array_file(tmp_path / "shard", part(2))
    assert open_array_file(tmp_path / "shard").arrays["n"][0] == 1
    assert [entry.name for entry in tmp_path.iterdir()] == ["shard"]


# ---- damage ---------------------------------------------------------------------------------------------------------------


def test_a_missing_shard_is_named(saved):
    shard(saved, 2).unlink()
    with pytest.raises(ModelError, match=r"weights-00002.safetensors is missing"):
        read_model(saved)


def test_a_shard_of_another_model_or_another_shard_in_its_place_is_found(saved, tmp_path):
    write_model(tmp_path / "other", model_of(*map(to_make, (4, 5, 6))))
    for source in (shard(tmp_path / "other"), shard(saved, 2)):
        kept = shard(saved).read_bytes()
        shutil.copy(source, shard(saved))
        with pytest.raises(ModelError, match=r"weights-00001.safetensors was changed after it was saved"):
            read_model(saved)
        shard(saved).write_bytes(kept)
    assert numbers_in(saved) == [1, 2, 3]


@pytest.mark.parametrize("keep", [0, 4, 20, 0.5, 0.99])
def test_a_truncated_shard_is_found(saved, keep):
    data = shard(saved, 3).read_bytes()
    shard(saved, 3).write_bytes(data[: int(keep * len(data)) if isinstance(keep, float) else keep])
    with pytest.raises(ModelError, match=r"weights-00003.safetensors has .* bytes instead of .* damaged or truncated"):
        read_model(saved)


@pytest.mark.parametrize("keep", [0, 4, 20, 0.5])
def test_a_truncated_file_that_stands_alone_is_found_by_its_header(tmp_path, keep):
    write_array_file(tmp_path / "shard", part(1))
    data = (tmp_path / "shard").read_bytes()
    (tmp_path / "shard").write_bytes(data[: int(keep * len(data)) if isinstance(keep, float) else keep])
    with pytest.raises(ModelError, match="is not a valid array file"):
        open_array_file(tmp_path / "shard")


def test_what_is_no_file_of_arrays_is_refused(tmp_path):
    with pytest.raises(ModelError, match="none is missing"):
        open_array_file(tmp_path / "none")
    with pytest.raises(ModelError, match="is not a regular file"):
        open_array_file(tmp_path)
    write_array_file(tmp_path / "there", part(1))
    (tmp_path / "link").symlink_to(tmp_path / "there")
    with pytest.raises(ModelError, match="link cannot be read"):
        open_array_file(tmp_path / "link")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.update({"weights-00005.safetensors": f["weights-00003.safetensors"]}), "not numbered from 1 to 4"),
        (lambda f: f.pop("weights-00001.safetensors"), "not numbered from 1 to 2"),
        (lambda f: f.update({"weights-00000.safetensors": f["weights-00003.safetensors"]}), "not numbered from 1 to 4"),
        (lambda f: f.update({"weights-1.safetensors": {}}), "'weights-1.safetensors', which does not belong to a model"),
        (lambda f: f.update({"weights-٠٠٠٠٤.safetensors": {}}), "does not belong to a model"),
        (lambda f: f.update({f"weights-{n:05d}.safetensors": {} for n in range(4, MAX_SHARDS + 2)}), "more files than a model can have"),
        (lambda f: f.update({f"more{n}.json": {} for n in range(9)}), "more files than a model can have"),
        (lambda f: f.update({"weights-00002.safetensors": 3}), "size and hash of weights-00002"),
        (lambda f: f.update({"weights-00004.safetensors": {"bytes": 1}}), "weights-00004.safetensors is missing"),
    ],
)  # fmt: skip
def test_a_manifest_of_shards_that_does_not_vouch_is_refused(saved, change, message):
    edit_manifest(saved, lambda manifest: change(manifest["files"]))
    with pytest.raises(ModelError, match=message) as caught:
        read_model(saved)
    assert "\n" not in str(caught.value)


def test_thousands_of_shards_may_be_named(saved):
    more = {f"weights-{n:05d}.safetensors": {"bytes": 1} for n in range(4, MAX_SHARDS + 1)}
    edit_manifest(saved, lambda manifest: manifest["files"].update(more))
    with pytest.raises(ModelError, match="weights-00004.safetensors is missing"):
        read_model(saved)


def test_a_file_too_many_is_not_read_and_not_overwritten(saved):
    shutil.copy(shard(saved), shard(saved, 4))
    assert numbers_in(saved) == [1, 2, 3]
    with pytest.raises(ModelError, match="holds 'weights-00004.safetensors', which does not belong to a model"):
        write_model(saved, model_of())


FEW_FILES = """
import resource, sys
from ramify.errors import ModelError
from ramify.persistence import read_model
resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
try:
    read_model(sys.argv[1])
except ModelError as error:
    sys.exit(str(error))
"""


def test_a_process_that_may_not_open_so_many_files_is_told_what_to_do(tmp_path):
    write_model(tmp_path / "m", model_of(*map(to_make, range(60))))
    done = subprocess.run([sys.executable, "-c", FEW_FILES, tmp_path / "m"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "Let the process open more files ('ulimit -n')" in done.stderr
    assert "\n" not in done.stderr.strip()


def test_too_little_room_for_a_map_is_told(tmp_path, monkeypatch):
    write_array_file(tmp_path / "shard", part(1))
    monkeypatch.setattr(arrays.mmap, "mmap", lambda *_, **__: (_ for _ in ()).throw(OSError(errno.ENOMEM, "no room")))
    with pytest.raises(ModelError, match="shard cannot be mapped: no room. Free some memory."):
        open_array_file(tmp_path / "shard")


# ---- classifiers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shards", [1, 2, 100])
def test_a_classifier_in_shards_can_be_saved_where_it_was_elsewhere_and_twice(classifier, tmp_path, shards):
    classifier.save(tmp_path / "model", shards=shards)
    loaded = ramify.load(tmp_path / "model")
    assert len(loaded.learner_.weights_.shards) == min(shards, 5)
    for target in ("model", "model", "other", "other"):
        loaded.save(tmp_path / target)
        again = ramify.load(tmp_path / target)
        assert (again.predict(TEXTS) == classifier.predict(TEXTS)).all()
        np.testing.assert_allclose(again.predict_proba(TEXTS), classifier.predict_proba(TEXTS), rtol=1e-4, atol=1e-6)
    files = json.loads((tmp_path / "model" / "manifest.json").read_text())["files"]
    assert len([name for name in files if name.startswith("weights-")]) == min(shards, 5)
    arrays_whole = read_model(tmp_path / "model").arrays
    assert not [name for name in arrays_whole if "delta" in name]


def test_a_classifier_without_shards_is_saved_as_ever(classifier, tmp_path):
    classifier.save(tmp_path / "model")
    assert not list((tmp_path / "model").glob("weights-*"))
    assert ramify.load(tmp_path / "model").learner_.scores_candidates_only is False


def test_what_cannot_be_cut_is_refused(classifier, tmp_path):
    classifier.save(tmp_path / "model", shards=2)
    with pytest.raises(InputError, match="in 2 shards already, and stays so"):
        ramify.load(tmp_path / "model").save(tmp_path / "other", shards=3)
    with pytest.raises(InputError, match="system 'nb' cannot be saved in shards; svm, lr, hr-svm and hr-lr can"):
        ramify.TextClassifier("nb").fit(TEXTS, LABELS).save(tmp_path / "other", shards=2)
    with pytest.raises(InputError, match="system 'td-svm' cannot be saved in shards"):
        ramify.TextClassifier("td-svm").fit(TEXTS, LABELS).save(tmp_path / "other", shards=2)
    with pytest.raises(InputError, match="the number of shards is 0"):
        classifier.save(tmp_path / "other", shards=0)
    assert not (tmp_path / "other").exists()


def vouch(path, source_of):
    """A manifest that vouches for other shards than the model had."""
    stored = read_model(path)
    write_model(path, StoredModel(stored.metadata, stored.documents, stored.arrays, source_of(stored.shards)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda shards: shards[:2], "has 2 shards where 3 were written"),
        (lambda shards: [*shards, shards[0]], "has 4 shards where 3 were written"),
        (lambda shards: shards[::-1], "not those of this model"),
        (lambda shards: [to_make(1), *shards[1:]], "is no shard of a linear model: it has no 'index_offsets'"),
        (lambda shards: (), "has 0 shards where 3 were written"),
    ],
)
def test_a_model_whose_shards_are_vouched_for_and_do_not_fit_is_refused(classifier, tmp_path, change, message):
    classifier.save(tmp_path / "model", shards=3)  # of 1, 2 and 2 classes
    vouch(tmp_path / "model", change)
    with pytest.raises(ModelError, match=message) as caught:
        ramify.load(tmp_path / "model")
    assert "\n" not in str(caught.value)


def test_shards_of_a_learner_that_takes_none_are_refused(tmp_path):
    ramify.TextClassifier("nb").fit(TEXTS, LABELS).save(tmp_path / "model")
    vouch(tmp_path / "model", lambda _: [to_make(1)])
    with pytest.raises(ModelError, match="the model has shards, and its learner takes none"):
        ramify.load(tmp_path / "model")
