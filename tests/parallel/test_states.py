"""Files with states: whole or not at all, one's own once they are read, and refused where they were changed."""

import errno

import numpy as np
import pytest

from ramify.errors import InputError, ModelError
from ramify.parallel import checkpoints
from ramify.parallel.checkpoints import read_state, restore_saved, save_state, write_state

BASE = np.arange(3.0)


def test_arrays_that_were_saved_are_copies(tmp_path):
    path = tmp_path / "a.safetensors"
    write_state(path, {"b": np.arange(3), "empty": np.zeros((0, 4)), "one": np.array(7)})
    read = read_state(path)
    read["b"][0] = 9
    assert (read["b"].tolist(), read["empty"].shape, int(read["one"])) == ([9, 1, 2], (0, 4), 7)
    assert read_state(path)["b"].tolist() == [0, 1, 2]


def test_a_state_that_cannot_be_written_is_reported_in_one_sentence(tmp_path):
    with pytest.raises(InputError, match=r"cannot write the checkpoint .*; make room, or choose another directory") as error:
        write_state(tmp_path / "nowhere" / "a.safetensors", {"a": BASE})
    assert "\n" not in str(error.value)


def test_a_full_disk_leaves_neither_half_a_state_nor_another(tmp_path, monkeypatch):
    write_state(tmp_path / "a.safetensors", {"a": BASE})

    def write_half(path, arrays):
        path.write_bytes(b"half")
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(checkpoints, "write_arrays", write_half)
    with pytest.raises(InputError, match=r"cannot write the checkpoint .*: no space left on device; make room"):
        write_state(tmp_path / "a.safetensors", {"a": -BASE})
    assert [path.name for path in tmp_path.iterdir()] == ["a.safetensors"]
    assert read_state(tmp_path / "a.safetensors")["a"].tolist() == BASE.tolist()


def test_a_state_is_restored_as_it_was_saved(tmp_path):
    restored = {}
    restore_saved(save_state(tmp_path / "a.safetensors", {"a": BASE}), restored.update)
    assert restored["a"].tolist() == BASE.tolist()


def test_a_state_that_was_changed_since_is_not_restored(tmp_path):
    kept = save_state(tmp_path / "a.safetensors", {"a": BASE})
    write_state(kept.path, {"a": -BASE})
    with pytest.raises(ModelError, match=r"a\.safetensors was changed after it was written; train without --resume"):
        restore_saved(kept, lambda state: pytest.fail("a member saw it"))
