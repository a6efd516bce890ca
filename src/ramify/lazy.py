"""Packages whose names are imported when they are first used (PEP 562), so that importing a package costs nothing."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any


def lazy_names(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package whose public names stand in its ``if TYPE_CHECKING:`` block.

    The block is what type checkers and readers see; here the same lines say where a name is imported from.
    """

    @cache
    def homes() -> dict[str, tuple[str, str | None]]:
        """For each name the module to import, and its name there; None where the name is the module itself."""
        spec = find_spec(package)
        source = spec.loader.get_source(package) if spec and spec.loader else ""  # type: ignore[attr-defined]
        found: dict[str, tuple[str, str | None]] = {}
        blocks = [node for node in ast.parse(source).body if isinstance(node, ast.If)]
        for line in (line for block in blocks for line in block.body if isinstance(line, ast.ImportFrom)):
            for alias in line.names:
                is_module = line.module == package
                home = (f"{package}.{alias.name}", None) if is_module else (str(line.module), alias.name)
                found[alias.asname or alias.name] = home
        return found

    def find(name: str) -> Any:
        if name.startswith("__") or name not in homes():
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, attribute = homes()[name]
        value = import_module(module) if attribute is None else getattr(import_module(module), attribute)
        setattr(sys.modules[package], name, value)
        return value

    return find, lambda: sorted(homes())
