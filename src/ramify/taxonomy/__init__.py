"""Taxonomies: trees, forests and DAGs of named nodes, label graphs, and the files that hold them."""

# isort: off
from ramify.taxonomy.closure import labels_on_tree, largest_below, spread_over_dag
from ramify.taxonomy.descent import descend_by_probability, descend_by_score, levels_of
from ramify.taxonomy.diff import Change, TaxonomyDiff, diff_taxonomies
from ramify.taxonomy.diff import parse_reassignments, read_reassignments, render_reassignment_template
from ramify.taxonomy.files import as_taxonomy, read_taxonomy, write_taxonomy
from ramify.taxonomy.formats.text import find_separator
from ramify.taxonomy.graph import LabelGraph
from ramify.taxonomy.hierarchy import ARROW, PATH_SEPARATORS, Taxonomy, ancestor_matrix, as_label_matrix
from ramify.taxonomy.hierarchy import check_taxonomy, expand_to_ancestors, most_general, most_specific
from ramify.taxonomy.label_format import LabelFormat, find_label_format, normalize_labels, taxonomy_of_labels
from ramify.taxonomy.given_labels import GivenLabels, read_labels
from ramify.taxonomy.node_values import note_on_others, read_node_values, values_by_node
from ramify.taxonomy.learning import Group, LearnedTaxonomy, learn_groups, learn_taxonomy
# isort: on

__all__ = ["ARROW", "PATH_SEPARATORS", "Change", "GivenLabels", "Group", "LabelFormat", "LabelGraph", "LearnedTaxonomy"]
__all__ += ["Taxonomy", "TaxonomyDiff", "ancestor_matrix", "as_label_matrix", "as_taxonomy", "check_taxonomy"]
__all__ += ["descend_by_probability", "descend_by_score", "diff_taxonomies", "expand_to_ancestors", "find_label_format"]
__all__ += ["find_separator"]
__all__ += ["labels_on_tree", "largest_below", "learn_groups", "learn_taxonomy", "levels_of", "most_general", "most_specific"]
__all__ += ["normalize_labels", "note_on_others", "parse_reassignments", "read_labels", "read_node_values"]
__all__ += ["read_reassignments", "read_taxonomy", "render_reassignment_template", "spread_over_dag", "taxonomy_of_labels"]
__all__ += ["values_by_node", "write_taxonomy"]
