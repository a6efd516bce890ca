"""Parts of scikit-learn in a model directory, written and read by skops; the only file that names it.

skops writes no pickle: a file lists the types of an object and their values. Before anything is made from it, every type is
compared with the ones that are safe: those of numpy, scipy and scikit-learn that skops has checked, and the few below, all of
them plain Python. Trees and neighbour indexes are not among them: their compiled code trusts what a file says.
"""

from __future__ import annotations

from io import BytesIO
from typing import Any
from zipfile import ZipFile

import numpy as np
from numpy.typing import NDArray

from ramify.errors import InputError, ModelError

SAFE = frozenset(
    {
        "sklearn.calibration._CalibratedClassifier",
        "sklearn.calibration._SigmoidCalibration",
        "sklearn.feature_selection._univariate_selection.chi2",
        "sklearn.feature_selection._univariate_selection.f_classif",
        "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
        "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
        "sklearn.utils._bunch.Bunch",
    }
)
INSTEAD = "use a part of Ramify, or one without trees, neighbours and functions of your own"


def dump_estimator(estimator: Any) -> NDArray[np.uint8]:
    """A fitted estimator as bytes; refuses what could not be loaded again."""
    name = type(estimator).__name__
    try:
        from skops import io
    except ImportError:
        needed = f"saving a model with {name} needs skops: pip install 'ramify[skops]'"
        raise InputError(f"{needed}. Or use a part of Ramify.") from None
    try:
        data = io.dumps(estimator)
        unsafe = _unsafe_types(io, data)
    except Exception as error:  # whatever an object of somebody else's raises when it is read
        raise InputError(f"{name} cannot be saved ({type(error).__name__}: {error!s:.120}); {INSTEAD}.") from None
    if unsafe:
        raise InputError(f"{name} cannot be saved: it holds {', '.join(unsafe[:3])}, which no model file may; {INSTEAD}.")
    return np.frombuffer(data, dtype=np.uint8)


def load_estimator(stored: NDArray[Any]) -> Any:
    """An estimator from its bytes; nothing is made from them before all of their types are known to be safe."""
    try:
        from skops import io
    except ImportError:
        raise ModelError("the model has parts of scikit-learn, which need skops: pip install 'ramify[skops]'.") from None
    if stored.dtype != np.uint8 or stored.ndim != 1:
        raise ModelError("the parts of scikit-learn are not bytes; train the model again.")
    data = stored.tobytes()
    try:
        _refuse_packed(data)
        unsafe = _unsafe_types(io, data)
        if not unsafe:
            return io.loads(data, trusted=sorted(SAFE))
    except Exception as error:  # a damaged archive can raise anything
        found = f"{type(error).__name__}: {error!s:.120}"
        raise ModelError(f"the parts of scikit-learn cannot be read ({found}); train the model again.") from None
    raise ModelError(f"the model holds {', '.join(unsafe[:3])}, which is not safe to load; train it without.")


def _refuse_packed(data: bytes) -> None:
    """Refuse an archive that unpacks to more than it has; skops packs nothing when it writes."""
    with ZipFile(BytesIO(data)) as archive:
        if sum(entry.file_size for entry in archive.infolist()) > len(data):
            raise ValueError("its archive is packed")


def _unsafe_types(io: Any, data: bytes) -> list[str]:
    return [name for name in io.get_untrusted_types(data=data) if name not in SAFE]
