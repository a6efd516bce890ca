"""A pytest plugin that tests the compiled kernels in the directory RAMIFY_CORE instead of the installed ones.

``make sanitize`` uses it: ``RAMIFY_CORE=build/sanitize python -m pytest -p other_core``.
"""

import os
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

NAME = "ramify.native._core"

if "RAMIFY_CORE" in os.environ:
    (_file,) = Path(os.environ["RAMIFY_CORE"]).glob("_core.*.so")
    _spec = spec_from_file_location(NAME, _file)
    assert _spec is not None
    assert _spec.loader is not None
    sys.modules[NAME] = module_from_spec(_spec)
    _spec.loader.exec_module(sys.modules[NAME])
