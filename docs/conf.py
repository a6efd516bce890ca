"""Sphinx settings."""

from importlib.metadata import version as installed

project = "Ramify"
author = "The Ramify developers"
copyright = "2026, The Ramify developers"
release = version = installed("ramify")

extensions = ["myst_parser", "sphinx.ext.autodoc"]
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = f"Ramify {release}"
exclude_patterns = ["_build"]
autodoc_typehints = "none"
autodoc_member_order = "bysource"
default_role = "literal"
nitpicky = True
nitpick_ignore_regex = [(r"py:.*", r"(numpy|scipy|sklearn|pathlib|collections|typing)\..*"), (r"py:.*", r"[A-Z]\w*")]
