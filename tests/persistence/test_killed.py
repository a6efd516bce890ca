"""A process killed at any point of `save` leaves the old model or the new one, 200 times."""

import os
import subprocess
import sys

import pytest

SCRIPT = """
import os, random, signal, sys, time
import numpy as np
from ramify.errors import ModelError
from ramify.persistence import StoredModel, atomic, read_model, write_model

path, swap = sys.argv[1], sys.argv[2] == "swap"
if not swap:
    atomic._swap_names = lambda a, b: False

def model(version):
    return StoredModel({"version": version}, {"features": [version] * 1000}, {"w": np.full((300, 50), version, dtype=np.float32)})

def check():
    stored = read_model(path)
    version = stored.metadata["version"]
    assert stored.documents["features"] == [version] * 1000
    assert (stored.arrays["w"] == version).all()
    return version

def save_for_ever(start):
    version = start
    while True:
        version += 1
        write_model(path, model(version))

start = time.perf_counter()
write_model(path, model(0))
one_save = time.perf_counter() - start
random.seed(1)
kept, seen = 0, set()
for round in range(200):
    child = os.fork()
    if child == 0:
        save_for_ever(kept)
    time.sleep(random.random() * 2 * one_save)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    found = check()
    assert found >= kept, (found, kept)
    seen.add(found - kept)
    kept = found
write_model(path, model(kept + 1))
assert check() == kept + 1
assert 0 in seen  # some kills fell into the first save …
assert kept > 0  # … and some saves were finished
print("survived 200 kills;", "saves finished before a kill:", sorted(seen))
print("left beside the model:", [name for name in os.listdir(os.path.dirname(path)) if name != "model"])
"""


@pytest.mark.parametrize("way", ["swap", "move aside"])
def test_killing_the_process_at_random_points_of_save_never_leaves_a_wrong_model(tmp_path, way):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, tmp_path / "model", way],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "survived 200 kills" in done.stdout
    assert "left beside the model: []" in done.stdout
    assert os.listdir(tmp_path) == ["model"]
