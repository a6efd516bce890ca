"""Taxonomies: trees, forests and DAGs of named nodes, label graphs, and the files that hold them."""

from ramify.taxonomy.closure import ancestor_matrix, as_label_matrix, expand_to_ancestors, most_general, most_specific
from ramify.taxonomy.descent import levels_of, walk_best, walk_down
from ramify.taxonomy.diff import (
    Change,
    TaxonomyDiff,
    diff_taxonomies,
    parse_reassignments,
    read_reassignments,
    render_questions,
)
from ramify.taxonomy.files import as_taxonomy, read_taxonomy, write_taxonomy
from ramify.taxonomy.graph import LabelGraph
from ramify.taxonomy.hierarchy import ARROW, PATH_SEPARATORS, Taxonomy
from ramify.taxonomy.label_form import LabelForm, find_form, listed_labels, taxonomy_of_labels
from ramify.taxonomy.learning import Group, LearntTaxonomy, learn_groups, learn_taxonomy

__all__ = [
    "ARROW",
    "PATH_SEPARATORS",
    "Change",
    "Group",
    "LabelForm",
    "LabelGraph",
    "LearntTaxonomy",
    "Taxonomy",
    "TaxonomyDiff",
    "ancestor_matrix",
    "as_label_matrix",
    "as_taxonomy",
    "diff_taxonomies",
    "expand_to_ancestors",
    "find_form",
    "learn_groups",
    "learn_taxonomy",
    "levels_of",
    "listed_labels",
    "most_general",
    "most_specific",
    "parse_reassignments",
    "read_reassignments",
    "read_taxonomy",
    "render_questions",
    "taxonomy_of_labels",
    "walk_best",
    "walk_down",
    "write_taxonomy",
]
