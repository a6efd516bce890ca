"""Gopal & Yang 2013: classifiers that are regularized towards their parents, beside flat ones and other ways to use a tree."""

from functools import partial

from experiments.gopal2013.classes import run_imclef, run_imclef_of_length_one, run_named, run_standing_in
from experiments.gopal2013.showing import show_corpus, show_others
from experiments.gopal2013.systems import systems_there
from experiments.gopal2013.topics import run_rcv1
from experiments.study import Part, Run, Study


def _nothing(_: Run) -> dict[str, str]:
    """The paper's figures need no work of ours."""
    return {}


def _on(name: str, about: str, in_quick: bool = False) -> Part:
    """A corpus that the paper does not have."""
    return Part(
        name=name,
        about=about,
        run=partial(run_named, name),
        show=partial(show_corpus, None),
        needs=(name,),
        also=systems_there,
        in_quick=in_quick,
    )


_LSHTC = "given to those who registered for the LSHTC challenge; no copy was at hand."
_HIDDEN = f"{_LSHTC} The labels of test documents stayed with the challenge's site, from which the paper has its figures."

STUDY = Study(
    name="gopal2013",
    title="Gopal & Yang 2013: Recursive Regularization for Large-scale Classification",
    lead="HR-SVM and HR-LR draw the weights of every class to those of its parent. Do they do better than other models?",
    parts=(
        Part(
            name="imclef07a",
            about="All systems on X-ray images, the paper's CLEF (Tables 3 and 4)",
            run=run_imclef,
            show=partial(show_corpus, "CLEF"),
            needs=("imclef07a",),
            also=systems_there,
        ),
        Part(
            name="imclef07a-length",
            about="The same with vectors of length 1, which the paper does not have",
            run=run_imclef_of_length_one,
            show=partial(show_corpus, None),
            needs=("imclef07a",),
            also=systems_there,
            in_quick=False,
        ),
        Part(
            name="rcv1",
            about="Systems that give several topics on RCV1 (Tables 3 and 4)",
            run=run_rcv1,
            show=partial(show_corpus, "RCV1"),
            needs=("rcv1",),
            also=systems_there,
        ),
        _on("20newsgroups", "All systems on 20 newsgroups, which the paper does not have", in_quick=True),
        _on("reuters21578", "All systems on Reuters-21578, which the paper does not have"),
        _on("esco_titles", "All systems on job titles, which the paper does not have"),
        _on("arxiv_small", "All systems on abstracts, which the paper does not have"),
        Part(
            name="electronics",
            about="All systems on the corpus that comes with Ramify",
            run=run_standing_in,
            show=partial(show_corpus, "CLEF", is_it=False),
            in_place_of=("imclef07a",),
            also=systems_there,
        ),
        Part(
            name="others",
            about="The paper's figures on its other data sets, which cannot be obtained",
            run=_nothing,
            show=show_others,
        ),
    ),
    not_obtainable={
        "IPC": "patents, collected by WIPO; the paper does not say how its features were made, and no copy was at hand.",
        "LSHTC-small": _LSHTC,
        "DMOZ-2010, DMOZ-2011, DMOZ-2012, SWIKI-2011 and LWIKI": _HIDDEN,
    },
)
