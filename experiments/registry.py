"""Which papers there are: every module here that is named after one, such as gopal2013, holds its study as ``STUDY``."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

from experiments.study import Study
from ramify.errors import InputError, suggest

FOLDER = Path(__file__).parent
NAME = re.compile(r"[a-z]+\d{4}")


def study_names() -> list[str]:
    """The papers, oldest first.

    >>> "cesabianchi2006" in study_names()
    True
    """
    found = (entry.stem for entry in FOLDER.iterdir() if entry.suffix == ".py" or (entry / "__init__.py").is_file())
    return sorted((name for name in found if NAME.fullmatch(name)), key=lambda name: (name[-4:], name))


def find_study(name: str) -> Study:
    """The study of a paper.

    >>> find_study("cesabianchi2006").name
    'cesabianchi2006'
    """
    known = study_names()
    if name not in known:
        raise InputError(f"paper {name!r} is unknown; the papers are {', '.join(known)}.{suggest(name, known)}")
    study: Study = import_module(f"experiments.{name}").STUDY
    return study
