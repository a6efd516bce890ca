"""What changed between two taxonomies."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import changes as oracle
from strategies import trees

from ramify import Taxonomy
from ramify.errors import TaxonomyError
from ramify.taxonomy import diff_taxonomies, parse_reassignments, read_reassignments, render_reassignment_template
from ramify.taxonomy.diff import match_nodes, suggestion_for

FOOD = [("food", None), ("fruit", "food"), ("apple", "fruit"), ("pear", "fruit"), ("bread", "food"), ("rye", "bread")]


def taxonomy(edges, **titles):
    return Taxonomy.from_edges(edges, titles=titles)


def named(changes, kind):
    """Old and new names of the changes of a kind."""
    return [
        ([changes.old.names[node] for node in change.old], [changes.new.names[node] for node in change.new], change.nodes_below)
        for change in changes.of(kind)
    ]


def successors(changes):
    return {
        changes.old.names[node]: [changes.new.names[each] for each in nodes] for node, nodes in enumerate(changes.successors)
    }


# ---- stable names -------------------------------------------------------------------------------------------------------


def test_another_title_is_a_renamed_node_and_nothing_else():
    changes = diff_taxonomies(taxonomy(FOOD), taxonomy(FOOD, fruit="Fruit & Nuts"))
    assert named(changes, "renamed") == [(["fruit"], ["fruit"], 2)]
    assert len(changes.changes) == 1
    assert changes.is_renaming


def test_another_parent_is_a_moved_node_and_its_descendants_follow_unlisted():
    moved = [(child, "bread" if child == "fruit" else parent) for child, parent in FOOD]
    changes = diff_taxonomies(taxonomy(FOOD), taxonomy(moved))
    assert named(changes, "moved") == [(["fruit"], ["fruit"], 2)]
    assert len(changes.changes) == 1
    assert not changes.is_renaming


def test_added_and_retired_subtrees_are_listed_by_their_topmost_node():
    without = [edge for edge in FOOD if edge[0] in ("food", "bread", "rye")]
    changes = diff_taxonomies(taxonomy(FOOD), taxonomy(without))
    assert named(changes, "retired") == [(["fruit"], [], 2)]
    assert [changes.old.names[node] for node in changes.unassigned] == ["fruit", "apple", "pear"]
    assert named(diff_taxonomies(taxonomy(without), taxonomy(FOOD)), "added") == [([], ["fruit"], 2)]


def test_children_of_a_retired_node_move_to_where_they_are_now():
    flat = [("food", None), ("apple", "food"), ("pear", "food"), ("bread", "food"), ("rye", "bread")]
    changes = diff_taxonomies(taxonomy(FOOD), taxonomy(flat))
    assert [old for old, _, _ in named(changes, "moved")] == [["apple"], ["pear"]]
    assert named(changes, "retired") == [(["fruit"], [], 0)]


@given(trees(max_nodes=8))
def test_nothing_changed_between_a_taxonomy_and_itself(parents):
    edges = [(f"n{i}", f"n{above[0]}" if above else None) for i, above in enumerate(parents)]
    changes = diff_taxonomies(taxonomy(edges), taxonomy(edges[:1] + edges[1:]))
    assert not changes
    assert changes.is_renaming
    assert not changes.unassigned
    assert changes.successors == tuple((node,) for node in range(len(edges)))


@st.composite
def edited(draw):
    """A tree with stable names, and the same after nodes were moved, renamed, retired and added."""
    parents = draw(trees(max_nodes=9, min_nodes=2))
    edges = {f"n{i}": f"n{above[0]}" if above else None for i, above in enumerate(parents)}
    new = dict(edges)
    for name in draw(st.lists(st.sampled_from(sorted(edges)), max_size=3)):
        below = {name}
        while more := {child for child, parent in new.items() if parent in below} - below:
            below |= more
        new[name] = draw(st.sampled_from([None, *sorted(set(new) - below)]))
    for name in draw(st.sets(st.sampled_from(sorted(edges)), max_size=3)):
        if name not in new.values() and len(new) > 1:
            del new[name]
    for k in range(draw(st.integers(0, 2))):
        new[f"a{k}"] = draw(st.sampled_from([None, *sorted(new)]))
    titles = {name: f"{name}!" for name in draw(st.sets(st.sampled_from(sorted(new)))) if name in edges}
    return taxonomy(edges.items()), taxonomy(new.items(), **titles)


@given(edited())
def test_with_stable_names_exactly_what_was_done_is_found(pair):
    old, new = pair
    changes, expected = diff_taxonomies(old, new), oracle.compare(old, new)
    for kind in ("renamed", "moved"):
        assert {before[0] for before, _, _ in named(changes, kind)} == expected[kind]
    assert {changes.old.names[node] for node in changes.unassigned} == expected["retired"]
    for kind in ("added", "retired"):
        assert sum(1 + change.nodes_below for change in changes.of(kind)) == len(expected[kind])


# ---- reassignments --------------------------------------------------------------------------------------------------------------


def test_reassignments_merge_split_and_discard():
    new = taxonomy([("food", None), ("fruit", "food"), ("rye light", "food"), ("rye dark", "food")])
    text = "old\tnew\napple\tfruit\npear\tfruit\nfruit\tfruit\nrye\trye light\nrye\trye dark\nbread\t-\n"
    changes = diff_taxonomies(taxonomy(FOOD), new, parse_reassignments(text, taxonomy(FOOD), new))
    assert named(changes, "merged") == [(["fruit", "apple", "pear"], ["fruit"], 0)]
    assert named(changes, "split") == [(["rye"], ["rye light", "rye dark"], 0)]
    assert changes.unassigned == ()
    assert successors(changes)["bread"] == []


def test_retired_nodes_follow_the_reassignment_of_the_nearest_node_above_them():
    new = taxonomy([("food", None), ("plants", "food"), ("bread", "food"), ("rye", "bread")])
    changes = diff_taxonomies(taxonomy(FOOD), new, parse_reassignments("fruit,plants\n", taxonomy(FOOD), new))
    assert changes.unassigned == ()
    assert successors(changes)["apple"] == successors(changes)["fruit"] == ["plants"]
    assert named(changes, "renamed") == [(["fruit"], ["plants"], 0)]


def test_a_single_reassignment_is_a_move_or_a_new_name():
    new = taxonomy(
        [("food", None), ("fruit", "food"), ("Apple", "food"), ("pear", "fruit"), ("bread", "food"), ("rye", "bread")]
    )
    changes = diff_taxonomies(taxonomy(FOOD), new, parse_reassignments("apple\tApple\n", taxonomy(FOOD), new))
    assert named(changes, "renamed") == named(changes, "moved") == [(["apple"], ["Apple"], 0)]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("aple\tfruit\n", "line 1, old taxonomy: label 'aple' is not in the taxonomy of 6 nodes. Did you mean 'apple'"),
        ("apple\tfriut\n", "line 1, new taxonomy: label 'friut'"),
        ("apple\n", "line 1 has 1 cells"),
        ("old\tnew\n\tfruit\n", "line 2 has 2 cells"),
        ("apple\tfruit\napple\tfruit\n", "line 2 assigns 'apple' a second time"),
        ("apple\tfruit\napple\t-\n", "line 2 assigns 'apple' a second time"),
    ],
)
def test_invalid_reassignments_are_refused_by_line(text, sentence, tmp_path):
    (tmp_path / "reassignments.tsv").write_text(text)
    with pytest.raises(TaxonomyError, match=sentence):
        read_reassignments(tmp_path / "reassignments.tsv", taxonomy(FOOD), taxonomy(FOOD))


def test_a_template_gives_no_reassignment_until_it_is_filled_in(tmp_path):
    old, new = taxonomy(FOOD), taxonomy([edge for edge in FOOD if edge[0] != "pear"])
    template = render_reassignment_template(diff_taxonomies(old, new))
    assert template.splitlines() == ["old\tnew\tsuggestion", "pear\t\t"]
    assert parse_reassignments(template, old, new) == {}
    assert parse_reassignments(template.replace("pear\t", "pear\tapple"), old, new) == {
        old.index("pear"): (new.index("apple"),)
    }
    with pytest.raises(TaxonomyError, match=r"cannot read the reassignments in .*absent"):
        read_reassignments(tmp_path / "absent", old, new)


def test_suggestions_are_nodes_with_the_same_title_or_one_that_holds_it():
    old = taxonomy(FOOD)
    joined = taxonomy([("food", None), ("apple and pear", "food"), ("bread", "food"), ("rye", "bread"), ("fruit", "food")])
    unassigned = diff_taxonomies(old, joined).as_dict()["unassigned"]
    assert unassigned == [{"old": "apple", "suggestion": None}, {"old": "pear", "suggestion": None}]
    beside = taxonomy([*FOOD[:2], ("apple and pear", "fruit"), *FOOD[4:]])
    assert {row["suggestion"] for row in diff_taxonomies(old, beside).as_dict()["unassigned"]} == {"apple and pear"}


# ---- names that are paths -------------------------------------------------------------------------------------------------


def paths_of(parents, titles):
    paths = []
    for node, above in enumerate(parents):
        paths.append(f"{paths[above[0]]}/{titles[node]}" if above else titles[node])
    return paths


@given(trees(max_nodes=8, min_nodes=2), st.data())
def test_one_move_among_paths_is_found_with_all_that_goes_along(parents, data):
    titles = [f"t{i}" for i in range(len(parents))]
    old = Taxonomy.from_paths(paths_of(parents, titles))
    node = data.draw(st.integers(1, len(parents) - 1))
    below = {node}
    for child in range(node + 1, len(parents)):
        below |= {child} if parents[child] and parents[child][0] in below else set()
    target = data.draw(st.sampled_from([[], *([other] for other in range(len(parents)) if other not in below)]))
    moved = [list(above) for above in parents]
    moved[node] = target
    order = sorted(range(len(parents)), key=lambda i: _depth(moved, i))
    place = {i: k for k, i in enumerate(order)}
    new = Taxonomy.from_paths(paths_of([[place[p] for p in moved[i]] for i in order], [titles[i] for i in order]))
    changes = diff_taxonomies(old, new)
    assert [old.titles[n] for n in range(len(old))] == [new.titles[nodes[0]] for nodes in changes.successors]
    expected = [] if target == parents[node] else [titles[node]]
    assert [old.titles[change.old[0]] for change in changes.changes] == expected


def _depth(parents, node):
    return 1 + _depth(parents, parents[node][0]) if parents[node] else 0


@given(trees(max_nodes=8, min_nodes=2), st.data())
def test_one_new_title_of_an_inner_node_among_paths_is_found(parents, data):
    titles = [f"t{i}" for i in range(len(parents))]
    inner = sorted({above[0] for above in parents if above})
    if not inner:
        return
    node = data.draw(st.sampled_from(inner))
    renamed = [f"{title}!" if i == node else title for i, title in enumerate(titles)]
    changes = diff_taxonomies(Taxonomy.from_paths(paths_of(parents, titles)), Taxonomy.from_paths(paths_of(parents, renamed)))
    assert [(change.kind, changes.old.titles[change.old[0]]) for change in changes.changes] == [("renamed", f"t{node}")]
    assert changes.is_renaming


def test_what_is_not_certain_among_paths_is_unassigned():
    for old, new in (
        (["a/x", "a/y"], ["a/z", "a/y"]),  # a leaf with another title may be another thing
        (["a/other", "b/other", "b/y"], ["b/other", "b/y", "a", "c/other"]),  # a title that several nodes have
        (["a/x/p", "a/x/q", "b"], ["a", "b/x/r", "b/x/s"]),  # other children
    ):
        changes = diff_taxonomies(Taxonomy.from_paths(old), Taxonomy.from_paths(new))
        assert not changes.of("moved")
        assert not changes.of("renamed")
        assert changes.unassigned


def test_flat_labels_that_are_given_parents_are_moved():
    changes = diff_taxonomies(Taxonomy.flat(["apple", "rye"]), Taxonomy.from_paths(["fruit/apple", "bread/rye"]))
    assert changes.counts["moved"] == 2
    assert not changes.unassigned


def test_another_separator_changes_nothing():
    changes = diff_taxonomies(Taxonomy.from_paths(["a/x", "a/y"]), Taxonomy.from_paths(["a > x", "a > y"], " > "))
    assert not changes
    assert changes.is_renaming


def test_a_large_taxonomy_is_compared_in_no_time():
    paths = [f"a{i}/b{j}/c{k}" for i in range(10) for j in range(20) for k in range(20)]
    moved = [path.replace("a3/b7/", "a4/b7x/") for path in paths]
    changes = diff_taxonomies(Taxonomy.from_paths(paths), Taxonomy.from_paths(moved))
    assert np.sum([change.nodes_below for change in changes.of("added")]) + changes.counts["added"] == 21


def test_no_similar_node_is_looked_for_among_very_many(monkeypatch):
    old, new = Taxonomy.flat(["tea", "coffee"]), Taxonomy.flat(["green tea", "water"])
    changes = diff_taxonomies(old, new)
    assert suggestion_for(changes, old.index("tea")) == "green tea"
    monkeypatch.setattr("ramify.taxonomy.diff.MOST_AROUND", 1)
    assert suggestion_for(changes, old.index("tea")) is None


def test_one_node_may_be_split_into_very_many():
    new = Taxonomy.flat([f"n{i}" for i in range(3000)])
    table = "".join(f"all\tn{i}\n" for i in range(3000))
    assert parse_reassignments(table, Taxonomy.flat(["all"]), new) == {0: tuple(range(3000))}
    with pytest.raises(TaxonomyError, match="line 3001 assigns 'all' a second time"):
        parse_reassignments(f"{table}all\tn7\n", Taxonomy.flat(["all"]), new)


def test_children_of_a_hub_are_matched_by_title():
    old = Taxonomy.from_paths([f"a/{i}/x" for i in range(300)])
    new = Taxonomy.from_paths([f"a/{i}/y" for i in range(299, -1, -1)])
    matched = match_nodes(old, new)
    assert all(new.names[matched[old.index(f"a/{i}")]] == f"a/{i}" for i in range(300))
    assert all(matched[old.index(f"a/{i}/x")] < 0 for i in range(300))
