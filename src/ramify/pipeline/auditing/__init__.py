"""An audit of a corpus: labels that seem wrong, duplicates that contradict each other, and classes that cannot be learnt."""

from ramify.pipeline.auditing.auditing import Audit, Duplicates, TroubledClass, Twins, audit
from ramify.pipeline.auditing.finding import Finding, LabelView

__all__ = ["Audit", "Duplicates", "Finding", "LabelView", "TroubledClass", "Twins", "audit"]
