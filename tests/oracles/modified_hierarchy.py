"""Oracle of F1 on the modified hierarchy: the modified tree is built with new names, then leaves are counted one by one."""

from oracles.metrics import Labels, Parents, mean, ratios
from oracles.taxonomy import close_upward, is_leaf, most_specific

Tree = dict[str, list[str]]  # the parents of every name


def modified_tree(true: Labels, parents: Parents, own_nodes: set[int]) -> Tree:
    """Every node as 'node i', and 'dummy i' below every inner node i that is a most specific true label or is given."""
    tree = {f"node {i}": [f"node {p}" for p in above] for i, above in enumerate(parents)}
    for i in range(len(parents)):
        stops_here = any(i in most_specific(parents, labels) for labels in true)
        if not is_leaf(parents, i) and (stops_here or i in own_nodes):
            tree[f"dummy {i}"] = [f"node {i}"]
    return tree


def leaf_names(tree: Tree) -> set[str]:
    """The names that are nobody's parent."""
    return {name for name in tree if not any(name in above for above in tree.values())}


def moved(labels: Labels, parents: Parents, tree: Tree) -> list[set[str]]:
    """The names that each document carries: its nodes, and the dummies of those at which it stops."""
    rows = []
    for nodes in labels:
        names = {f"node {i}" for i in close_upward(parents, nodes)}
        names |= {f"dummy {i}" for i in most_specific(parents, nodes) if f"dummy {i}" in tree}
        rows.append(names)
    return rows


def scores(true: list[set[str]], predicted: list[set[str]], leaves: set[str]) -> dict[str, float]:
    """Micro and macro F1 over some leaves, and how many there are."""
    f1, occurring = [], []
    total = [0, 0, 0]
    for leaf in sorted(leaves):
        support = sum(leaf in names for names in true)
        given = sum(leaf in names for names in predicted)
        correct = sum(leaf in t and leaf in p for t, p in zip(true, predicted, strict=True))
        total = [total[0] + support, total[1] + given, total[2] + correct]
        f1.append(ratios(support, given, correct)[2])
        if support or given:
            occurring.append(f1[-1])
    return {
        "micro_f1": ratios(*total)[2],
        "macro_f1": mean(f1, nothing=1.0),
        "macro_f1_occurring": mean(occurring, nothing=1.0),
        "n_classes": len(leaves),
        "n_occurring": len(occurring),
        "n_labels": total[0],
    }


def modified_f1(true: Labels, predicted: Labels, parents: Parents, own_nodes: set[int]) -> dict[str, dict[str, float]]:
    """The scores over all leaves of the modified tree, over the nodes among them, and over the dummies."""
    tree = modified_tree(true, parents, own_nodes)
    rows = moved(true, parents, tree), moved(predicted, parents, tree)
    leaves = leaf_names(tree)
    dummies = {name for name in leaves if name.startswith("dummy")}
    return {"all": scores(*rows, leaves), "leaves": scores(*rows, leaves - dummies), "dummies": scores(*rows, dummies)}
