"""The wheel holds everything: it installs and works without the source tree."""

import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

import ramify

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    # built by what is in this environment, as it was itself, so that the core need not be compiled again
    options = ["--quiet", "--no-deps", "--no-build-isolation"]
    command = [sys.executable, "-m", "pip", "wheel", *options, "--wheel-dir", folder, ROOT]
    subprocess.run(command, check=True, timeout=600)
    return next(folder.glob("*.whl"))


def test_the_wheel_holds_the_package_and_no_sources_of_the_core(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert any(name.startswith("ramify/native/_core") for name in names)
    assert "ramify/data/electronics/train.csv" in names
    assert "ramify/py.typed" in names
    page = {f"ramify/server/page/{path.name}" for path in (ROOT / "src/ramify/server/page").iterdir()}
    assert len(page) > 10
    assert page <= set(names)
    templates = {f"ramify/reports/templates/{path.name}" for path in (ROOT / "src/ramify/reports/templates").iterdir()}
    assert len(templates) > 5
    assert templates <= set(names)
    assert not [name for name in names if name.endswith((".cpp", ".h"))]


def test_the_wheel_works_without_the_source_tree(wheel, tmp_path):
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-deps", wheel], check=True, timeout=300)
    # dependencies come from this environment; a plain path entry does not carry its editable installs along
    site = subprocess.check_output([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], text=True).strip()
    (Path(site) / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    where = subprocess.check_output([python, "-c", "import ramify; print(ramify.__file__)"], text=True, cwd=tmp_path).strip()
    assert where.startswith(str(tmp_path))
    done = subprocess.run(
        [tmp_path / "venv" / "bin" / "ramify", "demo"], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "By level" in done.stdout


def test_no_module_holds_an_error_that_is_raised_again_and_again():
    # each time, it would keep the frames through which it went, and whatever these hold
    import importlib
    import pkgutil

    held = []
    for found in pkgutil.walk_packages(ramify.__path__, "ramify."):
        if found.name in ("ramify.parallel.ray", "ramify.native._core"):
            continue
        module = importlib.import_module(found.name)
        held += [f"{found.name}.{name}" for name, value in vars(module).items() if isinstance(value, BaseException)]
    assert held == []
