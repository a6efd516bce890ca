"""Names by which columns of labels are known."""

from __future__ import annotations

import re

LABEL_NAMES = (
    "label", "labels", "category", "categories", "class", "classes", "topic", "topics", "path", "target", "node", "code",
    "tag", "tags", "type",
)  # fmt: skip
LEVEL_NAME = re.compile(r"(?:level|lvl|l|cat|category|tier|label|class)[ _-]?(\d+)", re.IGNORECASE)
