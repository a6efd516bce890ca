"""Options of training: words and characters."""

import pytest

from ramify.errors import InputError
from ramify.features import FeatureUnion, Vectorizer
from ramify.systems import SYSTEMS
from ramify.workflows.training import new_vectorizer, parse_characters


@pytest.mark.parametrize("system", ["path-svm", "svm"])
def test_characters_stand_beside_words_with_their_weight(system):
    made = new_vectorizer(SYSTEMS[system], {"stop_words": "english", "min_df": 2}, "3-5:0.5")
    words, characters = made.blocks
    assert (words.stop_words, characters.stop_words) == ("english", None)
    assert (words.min_df, characters.min_df) == (2, 2)
    assert (characters.analyzer, characters.ngram_range) == ("char_wb", (3, 5))
    assert made.weights == [1.0, 0.5]


@pytest.mark.parametrize("system", ["path-svm", "svm", "nb"])
def test_without_characters_there_are_words_only(system):
    made = new_vectorizer(SYSTEMS[system], {}, "none")
    assert isinstance(made, Vectorizer)
    assert made.analyzer == "word"


def test_settings_of_words_leave_the_blocks_of_the_default_to_be_chosen():
    made = new_vectorizer(SYSTEMS["path-svm"], {"stop_words": "english"})
    assert isinstance(made, FeatureUnion)
    assert (made.blocks, made.words) == (None, {"stop_words": "english"})


@pytest.mark.parametrize("given", ["", "4-3", "0-2", "3-4:", "3-4:0", "3-4:x", "3-4:-1", "x", "3:4:5", "none:2"])
def test_other_lengths_and_weights_are_refused(given):
    with pytest.raises(InputError, match="--characters is"):
        parse_characters(given)
