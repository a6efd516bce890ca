"""Audit of a corpus: labels that are probably wrong, duplicates with different labels, classes that cannot be learnt."""

from ramify.workflows.auditing.audit import Audit, Duplicates, ProblemClass, audit
from ramify.workflows.auditing.issue_details import LabelInfo, LabelIssue
from ramify.workflows.auditing.label_issues import InseparableSiblings

__all__ = ["Audit", "Duplicates", "InseparableSiblings", "LabelInfo", "LabelIssue", "ProblemClass", "audit"]
