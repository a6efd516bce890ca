"""An audit of a corpus: labels that seem wrong, duplicates that contradict each other, and classes that cannot be learnt."""

from ramify.workflows.auditing.audit import Audit, Duplicates, TroubledClass, Twins, audit
from ramify.workflows.auditing.findings import LabelInfo, LabelIssue

__all__ = ["Audit", "Duplicates", "LabelInfo", "LabelIssue", "TroubledClass", "Twins", "audit"]
