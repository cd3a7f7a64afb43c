"""Lines of fields: YAML front matter and JSON files alike, since JSON is read as YAML here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kb.library.frontmatter import child_at
from kb.library.schema import Steps

if TYPE_CHECKING:
    from yaml import Node


class Places:
    """Where the fields of one file stand. ``offset`` is the line before the first line of ``text``."""

    def __init__(self, text: str, *, offset: int = 0) -> None:
        self._tree = _tree(text)
        self._offset = offset

    def line_of(self, steps: Steps) -> int:
        """Line of the field at ``steps``, or of the nearest enclosing one; the first line when the text is no YAML."""
        node, line = self._tree, 0
        for step in (*steps, None):
            if node is None:
                break
            line = int(node.start_mark.line)
            node = None if step is None else child_at(node, step)
        return self._offset + line + 1


def _tree(text: str) -> Node | None:
    import yaml

    try:
        node: Node | None = yaml.compose(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError:
        return None
    return node
