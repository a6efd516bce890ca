"""Kernels that find, count and sort terms, called as the vectorizer calls them."""

import itertools
import string
import struct
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import vectorizer as slow
from sklearn.utils import murmurhash3_32

from ramify.features.term_counts import TermList
from ramify.native import (
    Pattern,
    Rows,
    TermIndex,
    TermRules,
    count_hashed_terms,
    count_known_terms,
    count_new_terms,
    index_terms,
    renumber_rows,
    sort_terms,
    weigh_rows_in_place,
)

SEED = 0x9E3779B97F4A7C15
PLAIN = TermRules("word", True, 1, 1, None, None, None)  # lower case, runs of one word, no stop list, no stems
TERMS = st.text(st.characters(exclude_categories=()), max_size=12)


def names_of(terms, offsets):
    return TermList(terms, offsets).names


def as_counters(rows, names):
    offsets, terms, counts = rows
    return [
        Counter({names[t]: int(n) for t, n in zip(terms[a:b].tolist(), counts[a:b].tolist(), strict=True)})
        for a, b in itertools.pairwise(offsets.tolist())
    ]


# ---- counting -------------------------------------------------------------------------------------------------------


@given(st.lists(st.text("abcΣİé中 .", max_size=30), max_size=6), st.booleans(), st.integers(1, 3), st.integers(0, 2))
def test_new_terms_equal_the_oracle(texts, lowercase, shortest, more):
    rules = {"lowercase": lowercase, "ngram_range": (shortest, shortest + more)}
    found = count_new_terms(texts, TermRules("word", lowercase, shortest, shortest + more, None, None, None), True)
    names, expected = names_of(*found[:2]), slow.count_terms(texts, **rules)
    assert as_counters(found[4], names) == expected
    assert dict(zip(names, found[2].tolist(), strict=True)) == Counter(term for row in expected for term in row)
    assert dict(zip(names, found[3].tolist(), strict=True)) == sum(expected, Counter())


def test_new_terms_are_numbered_as_they_come_and_rows_are_left_out_when_nobody_wants_them():
    terms, offsets, documents, occurrences, rows = count_new_terms(["red fox red", "", "dog fox"], PLAIN, False)
    assert names_of(terms, offsets) == ["red", "fox", "dog"]
    assert (documents.tolist(), occurrences.tolist()) == ([1, 2, 1], [2, 2, 1])
    assert [part.tolist() for part in rows] == [[0, 0, 0, 0], [], []]


@given(st.lists(st.text("ab ", max_size=12), max_size=4), st.lists(TERMS, unique=True), st.sampled_from([1, 64]))
def test_known_terms_equal_the_oracle_and_others_are_passed_over(texts, known, times):
    rows = count_known_terms(texts * times, PLAIN, TermList.of(known).index)
    expected = [Counter({t: n for t, n in row.items() if t in known}) for row in slow.count_terms(texts)] * times
    assert as_counters(rows, known) == expected
    assert all(np.all(np.diff(rows[1][a:b]) > 0) for a, b in itertools.pairwise(rows[0]))


@given(st.lists(st.text("abcdé中 ", max_size=30), max_size=4), st.integers(1, 40), st.sampled_from([1, 64]))
def test_hashed_terms_equal_the_oracle(texts, n_columns, times):
    rows = count_hashed_terms(texts * times, PLAIN, n_columns)
    expected = [Counter(abs(murmurhash3_32(t)) % n_columns for t in slow.terms_of(text)) for text in texts] * times
    assert as_counters(rows, range(n_columns)) == expected


def test_stop_words_go_before_stems_and_stems_before_runs():
    left_out, words = TermList.of(["the"]).index, ["foxes", "dogs", "the"]
    rules = TermRules("word", True, 2, 2, left_out, TermList.of(words).index, TermList.of(["fox", "the", "never"]).packed)
    found = count_new_terms(["Foxes the dogs The wolves"], rules, False)
    assert names_of(*found[:2]) == ["fox the", "the wolves"]


@pytest.mark.parametrize("stem", ["", "x", "a stem that is much longer than its word " * 30, "é" * 99])
def test_stems_may_be_of_any_length(stem):
    texts = ["ab cd ab ef", "ab", "ab ab", "cd" * 50]
    rules = TermRules("word", True, 1, 2, None, TermList.of(["ab"]).index, TermList.of([stem]).packed)
    found = count_new_terms(texts, rules, True)
    words = [[stem if word == "ab" else word for word in text.split()] for text in texts]
    runs = [Counter(row) + Counter(" ".join(pair) for pair in itertools.pairwise(row)) for row in words]
    assert as_counters(found[4], names_of(*found[:2])) == runs


def test_texts_must_be_strings():
    with pytest.raises(TypeError, match="every text must be a string"):
        count_new_terms(["fine", 3], PLAIN, True)


# ---- finding --------------------------------------------------------------------------------------------------------


@given(st.lists(TERMS, unique=True))
def test_every_term_has_a_place_of_its_own(names):
    listed = TermList.of(names)
    numbers = (index_terms(listed.packed, SEED)[1::2] >> np.uint64(32)).tolist()
    assert sorted(number for number in numbers if number) == list(range(1, len(names) + 1))
    assert len(numbers) >= 2 * len(names)
    assert len(numbers).bit_count() == 1


MASK = (1 << 64) - 1
FACTOR = 0xD6E8FEB86659FD93


def mixed(state: int, word: int) -> int:
    """One step of the hash that tables use, over eight bytes."""
    state = (state ^ word) * FACTOR & MASK
    return state ^ state >> 32


def colliding_terms(n_pairs: int) -> list[str]:
    """2 ** n_pairs terms of one length, one beginning and one hash.

    Steps of the hash can be undone: where two states differ by what letters can differ by, the letters that follow bring
    them together again.
    """
    letters = f"{string.ascii_letters}{string.digits}_".encode()
    apart = {a ^ b: (a, b) for a, b in itertools.product(letters, letters)}
    rng = np.random.default_rng(0)
    state = mixed(SEED ^ (8 + 16 * n_pairs), struct.unpack("<Q", b"together")[0])
    parts = []
    while len(parts) < n_pairs:
        first, second = (bytes(rng.choice(list(letters), 8).tolist()) for _ in range(2))
        after = [mixed(state, struct.unpack("<Q", eight)[0]) for eight in (first, second)]
        difference = struct.pack("<Q", after[0] ^ after[1])
        if first == second or not all(byte in apart for byte in difference):
            continue
        ends = [bytes(apart[byte][k] for byte in difference) for k in (0, 1)]
        state = mixed(after[0], struct.unpack("<Q", ends[0])[0])
        parts.append([(first + ends[0]).decode(), (second + ends[1]).decode()])
    return ["together" + "".join(choice) for choice in itertools.product(*parts)]


def test_terms_with_the_same_hash_are_told_apart():
    terms = colliding_terms(7)
    assert len(set(terms)) == 128
    listed = TermList.of(terms)
    slots = index_terms(listed.packed, SEED)
    taken = np.flatnonzero(slots[1::2])
    assert len(set((slots[1::2][taken] & np.uint64(0xFFFFFFFF)).tolist())) == 1  # they do look alike
    assert len(set(slots[::2][taken].tolist())) == 1
    texts = [" ".join(terms[k:] + terms[:5]) for k in range(70)]
    expected = slow.count_terms(texts, lowercase=False)
    rules = TermRules("word", False, 1, 1, None, None, None)
    found = count_new_terms(texts, rules, True)
    assert as_counters(found[4], names_of(*found[:2])) == expected
    known = TermIndex(listed.packed, slots, SEED)
    assert as_counters(count_known_terms(texts, rules, known), terms) == expected
    assert count_known_terms([terms[0] + "x"], rules, known)[1].tolist() == []


def test_terms_made_to_collide_do_not_where_the_seed_is_another():
    listed = TermList.of(colliding_terms(7))
    _, (_, own_slots, seed) = listed.index.__reduce__()
    for slots in (own_slots, index_terms(listed.packed, SEED + 1)):
        checks = slots[1::2][np.flatnonzero(slots[1::2])] & np.uint64(0xFFFFFFFF)
        assert len(set(checks.tolist())) > 100
    assert seed != TermList.of(listed.names).index.__reduce__()[1][2]


# ---- sorting and weighing -------------------------------------------------------------------------------------------


@given(st.lists(st.lists(TERMS, unique=True), min_size=1, max_size=4))
def test_sorted_terms_are_in_the_order_of_python_and_positions_say_where(lists):
    terms, offsets, positions = sort_terms([TermList.of(names).packed for names in lists])
    listed = [name for names in lists for name in names]
    assert names_of(terms, offsets) == sorted(set(listed))
    assert [sorted(set(listed))[position] for position in positions] == listed


def test_terms_are_sorted_behind_their_first_eight_bytes_too():
    names = ["".join(tail) for n in (0, 7, 8, 9, 16) for tail in itertools.product(["a" * n], ["", "a", "b", "é", "中", "𐐨"])]
    terms, offsets, _ = sort_terms([TermList.of(names[::-1]).packed])
    assert names_of(terms, offsets) == sorted(set(names))


@given(st.data(), st.integers(0, 5), st.integers(1, 2000))
def test_renumbered_rows_are_sorted_and_add_up(data, n_rows, n_terms):
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    rows = [rng.choice(n_terms, rng.integers(0, min(n_terms, 200) + 1), replace=False) for _ in range(n_rows)]
    numbers = rng.integers(-1, data.draw(st.integers(1, n_terms)), n_terms).astype(np.int32)
    offsets = np.cumsum([0, *map(len, rows)]).astype(np.int64)
    terms = np.concatenate([*rows, []]).astype(np.int32)
    counts = rng.integers(1, 9, len(terms)).astype(np.float32)
    found = renumber_rows(Rows(offsets, terms, counts, n_terms), numbers, n_terms)
    expected = [Counter() for _ in rows]
    for row, (a, b) in zip(expected, itertools.pairwise(offsets), strict=True):
        for term, count in zip(terms[a:b], counts[a:b], strict=True):
            row[int(numbers[term])] += int(count)
        del row[-1]
    assert as_counters(found, range(n_terms)) == expected
    assert all(np.all(np.diff(found[1][a:b]) > 0) for a, b in itertools.pairwise(found[0]))


def test_weighed_rows_have_unit_length_and_empty_ones_stay():
    values = np.asarray([3, 2, 0], dtype=np.float32)
    offsets, terms = np.asarray([0, 2, 2, 3]), np.asarray([1, 0, 1], dtype=np.int32)
    weigh_rows_in_place(Pattern(offsets, terms, 2), np.asarray([2, 1], dtype=np.float32), values)
    np.testing.assert_allclose(values, [0.6, 0.8, 0], rtol=1e-7)
