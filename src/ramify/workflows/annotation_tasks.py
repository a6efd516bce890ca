"""Write predictions as tasks of an annotation tool, so that people correct proposals instead of starting from nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import IO

from ramify.classifier.text_classifier import TextClassifier
from ramify.data.annotations import Task, task_writer
from ramify.parallel import Stage
from ramify.workflows.predict_stream import Prediction, Tally, write_all


@contextmanager
def prediction_writer(
    file: IO[str], name: str, classifier: TextClassifier, is_multi_label: bool = False
) -> Iterator[Callable[[Prediction], None]]:
    """A function that writes a prediction as a task of a tool; rows without a text are left out.

    is_multi_label: whether a document may have several labels, also if none of the training documents had.
    """
    taxonomy, form = classifier.taxonomy_, classifier.form_
    nodes = {label: node for node, label in enumerate(form.write(taxonomy, range(len(taxonomy))))}
    has_many = is_multi_label or form.multi_label

    with task_writer(file, name) as write_task:

        def write(prediction: Prediction) -> None:
            if prediction.text is None:
                return
            fields = {key: value for key, value in prediction.row.items() if value != prediction.text}
            paths = [taxonomy.path_of(nodes[label]) for label, _ in prediction.labels]
            number = str(fields["id"] if fields.get("id") not in (None, "") else prediction.line)
            write_task(Task(number, prediction.text, fields, prediction.labels, paths, has_many))

        yield write


def write_tasks(
    predictions: Iterable[Prediction],
    file: IO[str],
    name: str,
    classifier: TextClassifier,
    step: Stage,
    *,
    source: str,
    strict: bool = False,
    is_multi_label: bool = False,
) -> Tally:
    """Write all predictions as tasks of a tool and count them. strict: refuse the first row without a text."""
    with prediction_writer(file, name, classifier, is_multi_label) as write:
        return write_all(predictions, write, source, strict, step)
