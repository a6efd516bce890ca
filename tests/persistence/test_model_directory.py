import json
import mmap
import os
import resource
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ramify
from ramify.errors import ModelError
from ramify.persistence import (
    FORMAT_VERSION,
    StoredModel,
    arrays,
    is_model,
    model_directory,
    model_fingerprint,
    model_metadata,
    read_model,
    write_model,
)
from ramify.persistence.arrays import map_arrays
from ramify.persistence.model_directory import refuse_foreign_target, sealed

MODEL = StoredModel(
    metadata={"system": "x"},
    documents={"features": {"terms": ["ä", "b"]}},
    arrays={
        "w": np.arange(12, dtype=np.float32).reshape(3, 4),
        "empty": np.zeros((0, 2)),
        "flags": np.asarray([True, False]),
    },
)


@pytest.fixture
def saved(tmp_path):
    write_model(tmp_path / "model", MODEL)
    return tmp_path / "model"


def memory_of(array):
    """What owns the memory of an array."""
    while isinstance(array, np.ndarray) and array.base is not None:
        array = array.base
    return array.obj if isinstance(array, memoryview) else array


def edit_manifest(path, change):
    manifest = json.loads((path / "manifest.json").read_text())
    change(manifest)
    manifest.pop("sha256")
    (path / "manifest.json").write_bytes(sealed(manifest))


def test_what_is_written_reads_back_the_same(saved):
    stored = read_model(saved)
    assert stored.metadata == MODEL.metadata
    assert stored.documents == MODEL.documents
    for name, array in MODEL.arrays.items():
        np.testing.assert_array_equal(stored.arrays[name], array)
        assert stored.arrays[name].dtype == array.dtype


def test_arrays_are_mapped_not_copied_and_cannot_be_changed(saved):
    weights = read_model(saved).arrays["w"]
    assert isinstance(memory_of(weights), mmap.mmap)
    with pytest.raises(ValueError, match="read-only"):
        weights[0, 0] = 1


def test_private_arrays_stay_as_they_are_when_the_file_is_overwritten(saved):
    stored = read_model(saved, private=True)
    (saved / "weights.safetensors").write_bytes(b"")  # cuts off what is mapped
    for name, array in MODEL.arrays.items():
        np.testing.assert_array_equal(stored.arrays[name], array)
    with pytest.raises(ValueError, match="read-only"):
        stored.arrays["w"][0, 0] = 1


def test_the_hash_is_that_of_what_was_read_not_of_what_the_file_was_before(saved, monkeypatch):
    place = saved / "weights.safetensors"
    before = place.read_bytes()
    read = np.fromfile
    monkeypatch.setattr(np, "fromfile", lambda *a, **k: place.write_bytes(before[:-1] + b"x") and read(*a, **k))
    with pytest.raises(ModelError, match="was changed after it was saved"):
        read_model(saved, private=True)


@pytest.mark.parametrize("bit", range(8))
def test_every_changed_bit_of_the_manifest_is_noticed(saved, bit):
    place = saved / "manifest.json"
    before = place.read_bytes()
    for position in range(len(before)):
        place.write_bytes(before[:position] + bytes([before[position] ^ 1 << bit]) + before[position + 1 :])
        with pytest.raises(ModelError):
            read_model(saved)


def test_files_are_readable_as_the_umask_says(saved):
    modes = {entry.name: entry.stat().st_mode & 0o777 for entry in saved.iterdir()}
    assert len(set(modes.values())) == 1, modes


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m.update(version=FORMAT_VERSION + 1), "was saved by a newer Ramify"),
        (
            lambda m: m.update(version=1),
            r"was saved by Ramify 0\.1 \(model format 1\); this version reads format 3\. Train it again",
        ),
        (lambda m: m.update(version="1"), "format version '1'"),
        (lambda m: m.update(version=True), "format version True"),
        (lambda m: m.update(format="other"), "does not describe a Ramify model"),
        (lambda m: m.pop("metadata"), "is incomplete"),
        (lambda m: m.update(files=[]), "is incomplete"),
        (lambda m: m["files"].update({"../../etc/passwd": {}}), "does not belong to a model"),
        (lambda m: m["files"].update({"manifest.json": {}}), "does not belong to a model"),
        (lambda m: m["files"].update({"features.json": 3}), "size and hash"),
        (lambda m: m["files"]["features.json"].update(bytes=1), "damaged or truncated"),
        (lambda m: m["files"]["features.json"].update(sha256="0" * 64), "changed after it was saved"),
        (lambda m: m["files"].update({"more.json": {"bytes": 1}}), "is missing"),
    ],
)
def test_a_manifest_that_does_not_vouch_is_refused(saved, change, message):
    edit_manifest(saved, change)
    with pytest.raises(ModelError, match=message) as caught:
        read_model(saved)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["weights.safetensors", "features.json"])
def test_one_changed_byte_is_found(saved, name):
    data = bytearray((saved / name).read_bytes())
    data[-1] ^= 1
    (saved / name).write_bytes(data)
    with pytest.raises(ModelError, match="changed after it was saved"):
        read_model(saved)


@pytest.mark.parametrize("name", ["weights.safetensors", "features.json", "manifest.json"])
@pytest.mark.parametrize("keep", [0, 0.5, 0.99])
def test_a_truncated_file_is_found(saved, name, keep):
    data = (saved / name).read_bytes()
    (saved / name).write_bytes(data[: int(keep * len(data))])
    with pytest.raises(ModelError):
        read_model(saved)


@pytest.mark.parametrize(
    "header",
    [
        b"[]", b"12", b'"abc"', b"{", b'{"w": 3}', b'{"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}}',
        b'{"w": {"dtype": "X", "shape": [1], "data_offsets": [0, 4]}}', b'{"w": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}}',
        b'{"w": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}}', b'{"w": {"dtype": "U8", "shape": [3], "data_offsets": [0, 3]}}',
    ],
)  # fmt: skip
def test_an_array_file_with_a_header_that_lies_is_refused(tmp_path, header):
    (tmp_path / "w").write_bytes(len(header).to_bytes(8, "little") + header + b"\x00" * 4)
    with open(tmp_path / "w", "rb") as file, pytest.raises(ModelError, match="not a valid array file"):
        map_arrays(tmp_path / "w", file)


def test_numbers_that_json_does_not_have_are_refused(saved):
    (saved / "manifest.json").write_text((saved / "manifest.json").read_text().replace('"x"', "NaN"))
    with pytest.raises(ModelError, match="not valid JSON"):
        read_model(saved)


def test_what_is_no_model_is_refused(tmp_path):
    with pytest.raises(ModelError, match="there is no such directory"):
        read_model(tmp_path / "none")
    (tmp_path / "folder").mkdir()
    with pytest.raises(ModelError, match="it has no manifest.json"):
        read_model(tmp_path / "folder")
    (tmp_path / "file").write_text("x")
    with pytest.raises(ModelError, match="is not a Ramify model"):
        read_model(tmp_path / "file")


def test_nothing_else_is_overwritten(tmp_path):
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "thesis.txt").write_text("years of work")
    with pytest.raises(ModelError, match="holds 'thesis.txt', which does not belong to a model"):
        write_model(tmp_path / "precious", MODEL)
    (tmp_path / "file").write_text("x")
    with pytest.raises(ModelError, match="is not a directory"):
        write_model(tmp_path / "file", MODEL)
    with pytest.raises(ModelError, match="cannot save a model at"):
        write_model(tmp_path / ("x" * 300), MODEL)
    (tmp_path / "empty").mkdir()
    refuse_foreign_target(tmp_path / "empty")
    write_model(tmp_path / "empty", MODEL)
    assert is_model(tmp_path / "empty")


def test_a_file_of_the_users_in_a_model_directory_is_never_deleted(saved):
    for name in ("notes.md", "notes.json"):
        (saved / name).write_text("mine")
        with pytest.raises(ModelError, match=f"holds '{name}'.*move it away"):
            write_model(saved, MODEL)
        assert (saved / name).read_text() == "mine"
        (saved / name).unlink()
    write_model(saved, MODEL)


def test_links_pipes_and_devices_are_not_opened(saved):
    weights = saved / "weights.safetensors"
    weights.unlink()
    weights.symlink_to("/dev/zero")
    with pytest.raises(ModelError, match="cannot be read"):
        read_model(saved)
    weights.unlink()
    os.mkfifo(weights)
    with pytest.raises(ModelError, match="not a regular file"):
        read_model(saved)


@pytest.mark.parametrize("kind", ["pipe", "link", "large"])
def test_a_manifest_that_is_no_small_regular_file_is_read_by_nobody(saved, tmp_path, kind):
    manifest = saved / "manifest.json"
    manifest.rename(tmp_path / "elsewhere")
    if kind == "pipe":
        os.mkfifo(manifest)
    elif kind == "link":
        manifest.symlink_to(tmp_path / "elsewhere")
    else:
        manifest.touch()
        os.truncate(manifest, 60 << 30)
    assert model_metadata(saved) == {}
    for read in (model_fingerprint, read_model, refuse_foreign_target):
        with pytest.raises(ModelError):
            read(saved)


def test_a_document_of_very_many_lists_is_refused_before_it_is_parsed(saved, monkeypatch):
    monkeypatch.setattr(model_directory, "MAX_NESTED", 2)
    with pytest.raises(ModelError, match=r"has more than 2 lists and objects; do not trust"):
        read_model(saved)


def test_a_header_of_impossible_sizes_is_refused_at_once(tmp_path):
    header = json.dumps({"w": {"dtype": "F32", "shape": [10**4000] * 3800, "data_offsets": [0, 4]}}).encode()
    (tmp_path / "a").write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))
    with open(tmp_path / "a", "rb") as file, pytest.raises(ModelError, match="a size is not possible"):
        map_arrays(tmp_path / "a", file)


def test_a_header_of_very_many_lists_is_refused_before_it_is_parsed(tmp_path, monkeypatch):
    monkeypatch.setattr(arrays, "MAX_NESTED", 9)
    arrays.write_array_file(tmp_path / "few", {"a": np.zeros(2), "b": np.zeros(2)})
    arrays.write_array_file(tmp_path / "many", {name: np.zeros(2) for name in "abc"})
    with open(tmp_path / "few", "rb") as file:
        assert set(map_arrays(tmp_path / "few", file)) == {"a", "b"}
    with open(tmp_path / "many", "rb") as file, pytest.raises(ModelError, match="more than 9 lists and objects"):
        map_arrays(tmp_path / "many", file)


@pytest.mark.parametrize("byte", [2, 128, 255])
def test_an_array_of_true_and_false_with_other_bytes_is_refused(tmp_path, byte):
    header = json.dumps({"w": {"dtype": "BOOL", "shape": [8], "data_offsets": [0, 8]}}).encode()
    header += b" " * (-len(header) % 8)
    (tmp_path / "a").write_bytes(len(header).to_bytes(8, "little") + header + bytes([0, 1, 1, 0, 0, byte, 0, 0]))
    with open(tmp_path / "a", "rb") as file, pytest.raises(ModelError, match="holds other values"):
        map_arrays(tmp_path / "a", file)


@pytest.mark.parametrize("value", ["nan", "1", None, True, float("nan"), float("inf"), -1, 2, 10**400, [1]])
def test_a_value_that_is_no_number_of_its_range_is_refused_in_one_sentence(value):
    for check in (arrays.checked_number, arrays.checked_count):
        with pytest.raises(ModelError, match=r"^some value of the model is .*; train the model again\.$"):
            check({"some_value": value}, "some_value", 0, 1)


def test_a_file_larger_than_the_memory_is_not_read_into_it(saved, monkeypatch):
    monkeypatch.setattr(arrays, "free_memory", lambda: 10.0)
    read_model(saved)  # mapped
    with pytest.raises(ModelError, match="does not fit into memory"):
        read_model(saved, private=True)


@pytest.mark.parametrize("way", ["swap", "move aside"])
def test_readers_never_see_half_of_two_models_while_others_save(tmp_path, way, monkeypatch):
    if way == "move aside":
        monkeypatch.setattr("ramify.persistence.atomic._swap_names", lambda a, b: False)
    write_model(tmp_path / "model", numbered(0))
    stop, errors = threading.Event(), []

    def save():
        for version in range(1, 60):
            write_model(tmp_path / "model", numbered(version))
        stop.set()

    def read():
        while not stop.is_set():
            stored = read_model(tmp_path / "model")
            if (
                stored.documents["features"] != [stored.metadata["n"]] * 50
                or (stored.arrays["w"] != stored.metadata["n"]).any()
            ):
                errors.append(stored.metadata)

    with ThreadPoolExecutor(3) as pool:
        for done in [pool.submit(save), pool.submit(read), pool.submit(read)]:
            done.result(120)
    assert not errors
    assert read_model(tmp_path / "model").metadata == {"n": 59}


def test_several_savers_do_not_disturb_each_other(tmp_path):
    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(write_model, tmp_path / "model", numbered(n)) for n in range(40)]:
            done.result(120)
    assert read_model(tmp_path / "model").metadata["n"] in range(40)
    assert os.listdir(tmp_path) == ["model"]


def numbered(version):
    return StoredModel({"n": version}, {"features": [version] * 50}, {"w": np.full((40, 40), version, dtype=np.float32)})


def test_values_that_json_cannot_hold_leave_the_old_model(saved):
    with pytest.raises(ValueError, match="JSON|float"):
        write_model(saved, StoredModel({"nan": float("nan")}, {}, {}))
    assert read_model(saved).metadata == MODEL.metadata
    assert os.listdir(saved.parent) == ["model"]


FULL_DISK = """
import resource, sys, numpy as np
from ramify.errors import ModelError
from ramify.persistence import StoredModel, write_model
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    write_model(sys.argv[1], StoredModel({"system": "new"}, {"features": ["x" * int(sys.argv[2])]}, {"w": np.zeros(int(sys.argv[3]))}))
except ModelError as error:
    print(error)
"""


@pytest.mark.parametrize(("text", "numbers"), [(200_000, 1), (1, 200_000)], ids=["in a document", "in the arrays"])
def test_a_full_disk_leaves_the_old_model_and_says_so(saved, text, numbers):
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, saved, str(text), str(numbers)], capture_output=True, text=True, check=True
    )
    assert "cannot save the model" in done.stdout
    assert "an older model there is unchanged" in done.stdout
    assert done.stdout.count("\n") == 1
    assert read_model(saved).metadata == MODEL.metadata
    assert os.listdir(saved.parent) == ["model"]
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 100_000


# ---- whole classifiers ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model(tmp_path_factory, classifier):
    path = tmp_path_factory.mktemp("classifier") / "model"
    classifier.save(path)
    return path


def test_a_loaded_classifier_answers_the_same(model, classifier, shop):
    again = ramify.load(model)
    texts = shop.test.documents[:50]
    assert again.predict(texts) == classifier.predict(texts)
    np.testing.assert_array_equal(again.predict_proba(texts), classifier.predict_proba(texts))
    assert again.taxonomy_ == classifier.taxonomy_


def test_saving_what_was_loaded_writes_the_same_bytes(model, tmp_path):
    ramify.load(model).save(tmp_path / "again")
    for entry in model.iterdir():
        assert (tmp_path / "again" / entry.name).read_bytes() == entry.read_bytes(), entry.name


def tampered(model, tmp_path, change):
    """A model whose content was changed by someone who also put the hashes right."""
    stored = read_model(model)
    copy = StoredModel(json.loads(json.dumps(stored.metadata)), json.loads(json.dumps(stored.documents)), dict(stored.arrays))
    change(copy)
    write_model(tmp_path / "evil", copy)
    return tmp_path / "evil"


def out_of_range(copy, name, value):
    array = copy.arrays[name].copy()
    array[-1] = value
    copy.arrays[name] = array


@pytest.mark.parametrize(
    "change",
    [
        lambda m: out_of_range(m, "learner.class_nodes", 10**6),
        lambda m: out_of_range(m, "learner.class_nodes", -5),
        lambda m: m.arrays.update({"learner.counts": m.arrays["learner.counts"][:5]}),
        lambda m: m.arrays.update({"learner.counts": m.arrays["learner.counts"].astype(np.float32)}),
        lambda m: m.arrays.pop("learner.class_weight"),
        lambda m: out_of_range(m, "learner.count_classes", 10**6),
        lambda m: out_of_range(m, "learner.count_offsets", 10**6),
        lambda m: m.arrays.update({"features.idf": np.ones(3, dtype=np.float32)}),
        lambda m: m.documents["features"]["params"].update(weighting="tf-idf"),
        lambda m: m.documents["features"]["params"].update(hashing=64),
        lambda m: m.metadata.update(selector={"measure": "guess"}),
        lambda m: m.metadata["figures"].pop("documents"),
        lambda m: m.documents["features"]["terms"].pop(),
        lambda m: m.documents["features"]["params"].update(ngram_range=[9, 1]),
        lambda m: m.documents["features"]["params"].update(weighting="__import__"),
        lambda m: m.documents["features"]["params"].update(analyzer="os.system"),
        lambda m: m.documents["features"].update(kind="os.system"),
        lambda m: m.documents.pop("taxonomy"),
        lambda m: m.documents["taxonomy"]["nodes"][5].update(parents=["nobody"]),
        lambda m: m.documents["taxonomy"]["nodes"][0].update(parents=[m.documents["taxonomy"]["nodes"][1]["name"]]),
        lambda m: m.documents["taxonomy"]["nodes"].append(m.documents["taxonomy"]["nodes"][0]),
        lambda m: m.documents["taxonomy"].update(separator=5),
        lambda m: m.documents.update(taxonomy=[]),
        lambda m: m.metadata.update(system="nbb"),
        lambda m: m.metadata["learner"].update(kind="subprocess.Popen"),
        lambda m: m.metadata["learner"].pop("parameters"),
        lambda m: m.metadata["decision"].update(kind="eval"),
        lambda m: m.metadata["decision"].update(extra=1),
        lambda m: m.metadata["decision"].update(leaves_only="no"),
        lambda m: m.metadata["learner"]["parameters"].update(alpha="x"),
        lambda m: m.metadata["labels"].update(separator=""),
        lambda m: m.metadata.pop("ramify"),
        lambda m: m.metadata["learner"]["parameters"].update(alpha=10**400),
        lambda m: m.metadata["labels"].update(integers=True),
        lambda m: m.metadata["figures"].update(columns={"label": 5}),
        lambda m: m.metadata["figures"].update(columns={"text": [3]}),
        lambda m: m.metadata["figures"].update(evaluation=3),
        lambda m: out_of_range(m, "learner.counts", np.nan),
        lambda m: m.metadata["labels"].update(style="evil"),
        lambda m: m.metadata.update(learner=None),
        lambda m: m.metadata.pop("figures"),
    ],
)
def test_a_tampered_model_with_right_hashes_is_refused_in_one_sentence(model, tmp_path, change):
    with pytest.raises(ModelError) as caught:
        ramify.load(tampered(model, tmp_path, change))
    assert "\n" not in str(caught.value)


@settings(max_examples=60)
@given(data=st.data())
def test_any_change_of_bytes_is_refused(model, tmp_path_factory, data):
    path = tmp_path_factory.mktemp("bytes") / "model"
    shutil.copytree(model, path)
    file = path / data.draw(st.sampled_from(sorted(entry.name for entry in path.iterdir())))
    content = bytearray(file.read_bytes())
    position = data.draw(st.integers(0, len(content) - 1))
    content[position] ^= data.draw(st.integers(1, 255))
    file.write_bytes(content)
    with pytest.raises(ModelError) as caught:
        ramify.load(path)
    assert "\n" not in str(caught.value)


def test_a_model_is_not_saved_into_another_one(saved):
    with pytest.raises(ModelError, match="lies in the model"):
        write_model(saved / "sub", MODEL)
    read_model(saved)
