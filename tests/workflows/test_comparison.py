"""The recommended system, and the sentences that give the reasons."""

import pytest
from comparisons import comparison, pair, system

from ramify.errors import InputError
from ramify.workflows.comparison import Skipped, recommend

GOOD, CHEAP, BAD = system("good", 0.8, 10.0), system("cheap", 0.7, 1.0), system("bad", 0.3, 20.0)


def words(found, by="micro_f1"):
    return " ".join(recommend(found, by).sentences)


def test_the_best_is_recommended_with_its_costs():
    found = comparison([CHEAP, GOOD, BAD], [pair("cheap", "good"), pair("bad", "good"), pair("cheap", "bad")])
    advice = recommend(found)
    assert (advice.by, advice.system, advice.not_worse) == ("micro_f1", "good", [])
    assert advice.sentences[0] == "Recommended: good, with the highest micro F1 of 3 systems, 0.800 [0.700, 0.900]."
    assert advice.sentences[1] == "good trains in 10.0 s, classifies 1,200 documents per second and needs 20 MB of memory."
    assert "All others are significantly worse; the next is cheap (0.700)." in advice.sentences


def test_those_that_are_not_significantly_worse_are_named_and_faster_ones_pointed_out():
    found = comparison([GOOD, CHEAP, BAD], [pair("bad", "good"), pair("bad", "cheap")], documents=1234)
    advice = recommend(found)
    assert advice.not_worse == ["cheap"]
    assert "Not significantly worse on these 1,234 documents: cheap (0.700)." in advice.sentences
    assert "Of those that may be as good, cheap trains 10 times as fast (1.00 s)." in advice.sentences
    assert "bad (0.300) is significantly worse." in advice.sentences
    assert "For less time" not in " ".join(advice.sentences)


def test_who_trains_and_who_classifies_faster_may_be_two_systems_or_one():
    quick, both = system("quick", 0.7, 10.0, speed=9999), system("both", 0.7, 2.0, speed=12340)
    assert (
        "cheap trains 10 times as fast (1.00 s), and quick classifies 8.1 times as fast (10,000 documents per second)."
        in words(comparison([GOOD, CHEAP, quick]))
    )
    assert "both trains 5.0 times as fast (2.00 s) and classifies 10 times as fast (12,000 documents per second)." in words(
        comparison([GOOD, both])
    )


def test_equals_that_are_no_faster_are_not_pointed_out():
    found = comparison([GOOD, system("slow", 0.75, 9.0)])
    assert "None of those that may be as good is twice as fast." in words(found)


def test_where_no_equal_is_cheaper_the_best_of_the_others_that_is_cheaper_is_named():
    behind = [pair(name, "good") for name in ("cheap", "bad", "cheapest")]
    found = comparison([GOOD, CHEAP, BAD, system("cheapest", 0.1, 0.01)], behind)
    assert "For less time: cheap is 0.100 behind, and trains 10 times as fast (1.00 s)." in words(found)


def test_the_bootstrap_of_the_measure_decides_and_no_other_test():
    close = pair("cheap", "good", p_value=0.001, bootstrap_macro_f1=0.3)
    found = comparison([CHEAP, GOOD], [close])
    assert recommend(found, "micro_f1").not_worse == []
    assert recommend(found, "macro_f1").not_worse == ["cheap"]


def test_a_test_that_could_not_be_made_tells_nothing():
    assert recommend(comparison([CHEAP, GOOD], [pair("cheap", "good", p_value=float("nan"))])).not_worse == ["cheap"]


def test_of_a_loss_the_lowest_is_recommended():
    found = comparison([system("much", h_loss=2.0), system("little", h_loss=1.0)], [pair("much", "little")])
    assert recommend(found, "h_loss").sentences[0].startswith("Recommended: little, with the lowest H-loss of 2 systems, 1.000")
    assert "much (2.000) is significantly worse." in words(found, "h_loss")


def test_where_nothing_is_significant_that_is_said():
    text = words(comparison([GOOD, CHEAP, BAD], documents=150))
    assert "No other system is significantly worse on these 150 documents, though: cheap (0.700) and bad (0.300)." in text
    assert "The order may be chance" in text
    assert "is significantly worse." not in text


def test_of_equal_values_the_cheapest_is_recommended():
    one, two, three = (system(name, 0.8, seconds) for name, seconds in (("one", 3.0), ("two", 2.0), ("three", 4.0)))
    everything = recommend(comparison([one, two, three]))
    assert (everything.system, everything.not_worse) == ("two", ["one", "three"])
    assert everything.sentences[0] == "All 3 systems have the same micro F1, 0.800. Recommended: two, the cheapest of them."
    assert (
        recommend(comparison([one, two]))
        .sentences[0]
        .startswith("Both systems have the same micro F1, 0.800. Recommended: two")
    )
    some = recommend(comparison([one, BAD, two], [pair("bad", "one"), pair("bad", "two")]))
    assert some.sentences[0] == "Recommended: two. two and one have the highest micro F1, 0.800; it is the cheapest."
    assert "Not significantly worse" not in " ".join(some.sentences)


def test_values_that_differ_by_rounding_alone_are_equal():
    assert recommend(comparison([system("dear", 0.3, 2.0), system("cheap", 0.1 + 0.2, 1.0)])).system == "cheap"


def test_trained_models_have_no_training_time():
    one, other = system("one", 0.8, None, speed=100.0, memory=None), system("other", 0.7, None, speed=1000.0)
    text = words(comparison([one, other], [pair("other", "one")]))
    assert "one classifies 100 documents per second." in text
    assert "trains" not in text
    assert "For less time: other is 0.100 behind, and classifies 10 times as fast (1,000 documents per second)." in text


def test_who_leads_by_other_measures_is_said_only_if_that_is_significant():
    rival = system("rival", 0.7, 10.0, macro_f1=0.9, hierarchical_f1=0.9, h_loss=0.8)
    ahead = pair("good", "rival", bootstrap_micro_f1=0.5, bootstrap_hierarchical_f1=0.5)
    assert (
        "Significantly better by other measures: rival in macro F1 (0.900 against 0.800)."
        in recommend(comparison([GOOD, rival], [ahead])).sentences
    )
    assert "by other measures" not in words(comparison([GOOD, rival]))
    third = system("third", 0.7, 10.0, h_loss=0.1)
    pairs = [ahead, pair("good", "third", bootstrap_micro_f1=0.5), pair("rival", "third")]
    assert "rival in macro F1 (0.900 against 0.800); third in H-loss (" in words(comparison([GOOD, rival, third], pairs))


def test_of_many_equals_some_are_named():
    names = "abcdefgh"
    text = words(comparison([system(name, 0.8 - 0.01 * k) for k, name in enumerate(names)]))
    assert "b (0.790), c (0.780), d (0.770), e (0.760), f (0.750) and 2 more" in text


def test_limits_of_the_comparison_are_said():
    assert "Only 24 documents were tested, so only large differences can be significant." in words(
        comparison([GOOD, CHEAP], documents=24)
    )
    assert "Only" not in words(comparison([GOOD, CHEAP], documents=100))
    few = comparison([GOOD, CHEAP, BAD], n_resamples=100)
    assert "100 resamples are too few for any significant difference; at least 120 are needed." in words(few)
    free = comparison([GOOD, CHEAP, BAD], correction="none")
    assert "p-values are not corrected: of 3 pairs, one in twenty is significant by chance." in words(free)
    assert "not corrected" not in words(comparison([GOOD, CHEAP], correction="none"))


def test_skipped_systems_are_named():
    skipped = [Skipped("hsvm", "no"), Skipped("ot", "neither")]
    assert "hsvm and ot were skipped: not usable on these documents." in words(comparison([GOOD, CHEAP], skipped=skipped))
    assert "hsvm was skipped" in words(comparison([GOOD, CHEAP], skipped=skipped[:1]))


def test_an_unknown_measure_is_refused():
    with pytest.raises(
        InputError, match="measure 'micro_f2' is unknown; the measures are accuracy, .* Did you mean 'micro_f1'"
    ):
        recommend(comparison([GOOD, CHEAP]), "micro_f2")
