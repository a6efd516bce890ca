"""Which system to take, in words."""

import pytest
from comparisons import comparison, pair, system

from ramify.errors import InputError
from ramify.workflows.comparison import Skipped, recommend

GOOD, CHEAP, BAD = system("good", 0.8, 10.0), system("cheap", 0.7, 1.0), system("bad", 0.3, 20.0)


def words(found, by="micro_f1"):
    return " ".join(recommend(found, by).words)


def test_the_best_is_taken_and_what_it_costs_is_said():
    found = comparison([CHEAP, GOOD, BAD], [pair("cheap", "good"), pair("bad", "good"), pair("cheap", "bad")])
    advice = recommend(found)
    assert (advice.by, advice.system, advice.as_good) == ("micro_f1", "good", [])
    assert advice.words[0] == "Take good: of 3 systems it has the highest micro F1, 0.800 [0.700, 0.900]."
    assert advice.words[1] == "good learns in 10.0 s, classifies 1,200 documents a second and needs 20 MB of memory."
    assert "All others are behind by more than luck; the next is cheap (0.700)." in advice.words


def test_those_that_cannot_be_told_from_the_best_are_named_and_the_cheaper_ones_praised():
    found = comparison([GOOD, CHEAP, BAD], [pair("bad", "good"), pair("bad", "cheap")], documents=1234)
    advice = recommend(found)
    assert advice.as_good == ["cheap"]
    assert "These 1,234 documents cannot tell it from cheap (0.700)." in advice.words
    assert "Of those that may be as good, cheap learns 10 times as fast (1.00 s)." in advice.words
    assert "bad (0.300) is behind by more than luck." in advice.words
    assert "For less time" not in " ".join(advice.words)


def test_who_learns_and_who_answers_faster_may_be_two_systems_or_one():
    quick, both = system("quick", 0.7, 10.0, speed=9999), system("both", 0.7, 2.0, speed=12340)
    assert (
        "cheap learns 10 times as fast (1.00 s), and quick classifies 8.1 times as fast (10,000 documents a second)."
        in words(comparison([GOOD, CHEAP, quick]))
    )
    assert "both learns 5.0 times as fast (2.00 s) and classifies 10 times as fast (12,000 documents a second)." in words(
        comparison([GOOD, both])
    )


def test_equals_that_are_no_cheaper_are_not_praised():
    found = comparison([GOOD, system("slow", 0.75, 9.0)])
    assert "None of those that may be as good is twice as fast." in words(found)


def test_where_no_equal_is_cheaper_the_best_of_the_others_that_is_cheaper_is_named():
    behind = [pair(name, "good") for name in ("cheap", "bad", "cheapest")]
    found = comparison([GOOD, CHEAP, BAD, system("cheapest", 0.1, 0.01)], behind)
    assert "For less time: cheap is 0.100 behind, and learns 10 times as fast (1.00 s)." in words(found)


def test_the_bootstrap_of_the_measure_gone_by_decides_and_no_other_test():
    close = pair("cheap", "good", p_value=0.001, bootstrap_macro_f1=0.3)
    found = comparison([CHEAP, GOOD], [close])
    assert recommend(found, "micro_f1").as_good == []
    assert recommend(found, "macro_f1").as_good == ["cheap"]


def test_a_test_that_could_not_be_made_tells_nothing():
    assert recommend(comparison([CHEAP, GOOD], [pair("cheap", "good", p_value=float("nan"))])).as_good == ["cheap"]


def test_of_a_loss_the_least_is_taken():
    found = comparison([system("much", h_loss=2.0), system("little", h_loss=1.0)], [pair("much", "little")])
    assert recommend(found, "h_loss").words[0].startswith("Take little: of 2 systems it has the least H-loss, 1.000")
    assert "much (2.000) is behind by more than luck." in words(found, "h_loss")


def test_where_nothing_can_be_told_apart_that_is_said():
    text = words(comparison([GOOD, CHEAP, BAD], documents=150))
    assert "These 150 documents cannot tell it from any other, though: cheap (0.700) and bad (0.300)." in text
    assert "The order may be luck" in text
    assert "behind" not in text


def test_of_equal_values_the_cheapest_is_taken():
    one, two, three = (system(name, 0.8, seconds) for name, seconds in (("one", 3.0), ("two", 2.0), ("three", 4.0)))
    everything = recommend(comparison([one, two, three]))
    assert (everything.system, everything.as_good) == ("two", ["one", "three"])
    assert everything.words[0] == "All 3 systems have the same micro F1, 0.800; take two, the cheapest of them."
    assert recommend(comparison([one, two])).words[0].startswith("Both systems have the same micro F1, 0.800; take two")
    some = recommend(comparison([one, BAD, two], [pair("bad", "one"), pair("bad", "two")]))
    assert some.words[0] == "Take two: it shares the highest micro F1, 0.800, with one, and is the cheapest."
    assert "cannot tell" not in " ".join(some.words)


def test_values_that_differ_by_rounding_alone_are_equal():
    assert recommend(comparison([system("dear", 0.3, 2.0), system("cheap", 0.1 + 0.2, 1.0)])).system == "cheap"


def test_trained_models_have_no_training_to_tell_of():
    one, other = system("one", 0.8, None, speed=100.0, memory=None), system("other", 0.7, None, speed=1000.0)
    text = words(comparison([one, other], [pair("other", "one")]))
    assert "one classifies 100 documents a second." in text
    assert "learns" not in text
    assert "For less time: other is 0.100 behind, and classifies 10 times as fast (1,000 documents a second)." in text


def test_who_leads_by_other_measures_is_said_only_if_that_is_more_than_luck():
    rival = system("rival", 0.7, 10.0, macro_f1=0.9, hierarchical_f1=0.9, h_loss=0.8)
    ahead = pair("good", "rival", bootstrap_micro_f1=0.5, bootstrap_hierarchical_f1=0.5)
    assert (
        "By other measures others lead by more than luck: rival in macro F1 (0.900 against 0.800)."
        in recommend(comparison([GOOD, rival], [ahead])).words
    )
    assert "By other measures" not in words(comparison([GOOD, rival]))
    third = system("third", 0.7, 10.0, h_loss=0.1)
    pairs = [ahead, pair("good", "third", bootstrap_micro_f1=0.5), pair("rival", "third")]
    assert "rival in macro F1 (0.900 against 0.800); third in H-loss (" in words(comparison([GOOD, rival, third], pairs))


def test_of_many_equals_some_are_named():
    names = "abcdefgh"
    text = words(comparison([system(name, 0.8 - 0.01 * k) for k, name in enumerate(names)]))
    assert "b (0.790), c (0.780), d (0.770), e (0.760), f (0.750) and 2 more" in text


def test_what_weakens_the_advice_is_said():
    assert "Only 24 documents were tested, so only large differences can show." in words(
        comparison([GOOD, CHEAP], documents=24)
    )
    assert "Only" not in words(comparison([GOOD, CHEAP], documents=100))
    few = comparison([GOOD, CHEAP, BAD], n_resamples=100)
    assert "100 resamples are too few to call any difference more than luck; it takes 120." in words(few)
    free = comparison([GOOD, CHEAP, BAD], correction="none")
    assert "p-values are not corrected: of 3 pairs, one in twenty seems to differ by luck." in words(free)
    assert "not corrected" not in words(comparison([GOOD, CHEAP], correction="none"))


def test_what_was_left_out_is_said():
    skipped = [Skipped("hsvm", "no"), Skipped("ot", "neither")]
    assert "hsvm and ot were left out, being unable to take these documents." in words(
        comparison([GOOD, CHEAP], skipped=skipped)
    )
    assert "hsvm was left out" in words(comparison([GOOD, CHEAP], skipped=skipped[:1]))


def test_an_unknown_measure_is_refused():
    with pytest.raises(
        InputError, match="measure 'micro_f2' is unknown; the measures are accuracy, .* Did you mean 'micro_f1'"
    ):
        recommend(comparison([GOOD, CHEAP]), "micro_f2")
