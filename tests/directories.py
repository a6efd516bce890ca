"""Made-up directories as tables of texts."""

import numpy as np

from ramify.taxonomy import most_specific


def write_directory(made, path):
    """Rows as texts of words w0, w1, …, with the path of each leaf as its label."""
    own = most_specific(made.Y, made.taxonomy).indices
    names = ["/".join(made.taxonomy.names[node] for node in made.taxonomy.nodes_to(int(leaf))) for leaf in own]
    rows = np.split(made.X.indices, made.X.indptr[1:-1])
    lines = [f"{' '.join(f'w{word}' for word in row)},{name}" for row, name in zip(rows, names, strict=True)]
    path.write_text("\n".join(["text,label", *lines]))
    return path
