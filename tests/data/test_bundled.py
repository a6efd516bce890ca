"""The bundled corpus is what its documentation says."""

import re


def everything(shop):
    return shop.train.documents + shop.test.documents, shop.train.labels + shop.test.labels


def test_it_has_three_levels_and_enough_of_everything(shop):
    texts, labels = everything(shop)
    assert shop.taxonomy.n_levels == 3
    assert shop.taxonomy.is_leaf.sum() >= 40
    assert len(texts) >= 1200
    assert sum(len(row) == 2 for row in labels) >= 100
    inner = {name for name, leaf in zip(shop.taxonomy.names, shop.taxonomy.is_leaf, strict=True) if not leaf}
    assert sum(bool(inner & set(row)) for row in labels) >= 100


def test_no_text_comes_twice_not_even_in_other_spelling(shop):
    texts, _ = everything(shop)
    bare = [re.sub(r"\W+", "", text.lower()) for text in texts]
    assert len(set(bare)) == len(bare)


def test_every_leaf_is_learnt_and_tested(shop):
    leaves = {name for name, leaf in zip(shop.taxonomy.names, shop.taxonomy.is_leaf, strict=True) if leaf}
    for part in (shop.train, shop.test):
        assert leaves <= {label for row in part.labels for label in row}
        assert not part.bad_rows


def test_texts_differ_in_length_and_opening(shop):
    texts, _ = everything(shop)
    lengths = sorted(len(text.split()) for text in texts)
    assert lengths[0] <= 5
    assert lengths[-1] >= 60
    openings = [" ".join(text.lower().split()[:2]) for text in texts]
    assert max(openings.count(opening) for opening in set(openings)) < 0.05 * len(texts)
