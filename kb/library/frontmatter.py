"""Front matter: one YAML mapping, read with the safe constructors only and within limits.

Refused, with file and line: anchors and aliases (a few lines of them expand to gigabytes), deep nesting, keys given twice
(YAML would keep the last one in silence), tags, and a document that is not a mapping.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from kb.errors import ContentError
from kb.library.schema import Steps

if TYPE_CHECKING:
    from yaml import Event, Node

LARGEST: Final = 2**18
"""Characters of front matter."""
DEEPEST: Final = 16
"""Levels of nesting; the deepest field of a record needs seven."""
FIRST_LINE: Final = 2
"""Line of the file on which the YAML starts, after the opening fence."""


_UNICODE_BREAK = re.compile("[\x85\u2028\u2029]")


class _Mark(Protocol):
    """What the marks of both YAML parsers have in common."""

    @property
    def line(self) -> int: ...


class FrontMatter(NamedTuple):
    """The mapping, and the tree it came from (for line numbers)."""

    fields: dict[str, Any]
    tree: Node

    def line_of(self, steps: Steps) -> int:
        """Line in the file of the field at ``steps``, or of the nearest enclosing one."""
        node = self.tree
        for step in steps:
            inner = child_at(node, step)
            if inner is None:
                break
            node = inner
        return int(node.start_mark.line) + FIRST_LINE


def read_front_matter(text: str, *, source: str) -> FrontMatter:
    """Parse the YAML between the fences. Raises ContentError naming ``source`` and the line."""
    import yaml

    if len(text) > LARGEST:
        raise ContentError(f"{source}: front matter longer than {LARGEST} characters", do="move the prose into the body")
    # The libyaml loader runs the same safe constructors, ten times faster.
    safe: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        for depth, event in _nested(yaml.parse(text, Loader=safe)):
            _check_event(event, depth, source)
        loader = safe(text)
        tree = loader.get_single_node()
        if not isinstance(tree, yaml.MappingNode):
            raise ContentError(
                f"{source}:{FIRST_LINE}: front matter is not a mapping",
                allowed="lines of the form field: value",
                do="write the record's fields",
            )
        _check_keys(tree, source)
        return FrontMatter(fields=loader.construct_document(tree), tree=tree)
    except yaml.MarkedYAMLError as error:
        raise _broken(str(error.problem), error.problem_mark, source) from error
    except (yaml.YAMLError, ValueError) as error:
        raise ContentError(f"{source}: front matter: {error}", allowed="YAML of plain values", do="correct the front matter") from error


def write_front_matter(fields: dict[str, Any]) -> str:
    """The canonical YAML of ``fields``: their order kept, one line a value, characters as they are."""
    import yaml

    class Writer(yaml.SafeDumper):
        pass

    def quoted(dumper: yaml.SafeDumper, text: str) -> Node:
        # Left to itself the dumper writes these line breaks raw, and reading folds them to spaces.
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"' if _UNICODE_BREAK.search(text) else None)

    Writer.add_representer(str, quoted)
    return yaml.dump(fields, Dumper=Writer, allow_unicode=True, sort_keys=False, default_flow_style=False, width=LARGEST)


def _nested(events: Any) -> Any:
    import yaml

    depth = 0
    for event in events:
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        yield depth, event


def _check_event(event: Event, depth: int, source: str) -> None:
    import yaml

    if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
        raise _broken("anchors and aliases are not allowed", event.start_mark, source)
    if getattr(event, "tag", None) is not None:
        raise _broken("tags are not allowed", event.start_mark, source)
    if depth > DEEPEST:
        raise _broken(f"nested deeper than {DEEPEST} levels", event.start_mark, source)


def _check_keys(node: Node, source: str) -> None:
    import yaml

    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _check_keys(item, source)
    elif isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.value in seen:
                raise _broken(f"key {key.value!r} is given twice or not a word", key.start_mark, source)
            seen.add(key.value)
            _check_keys(value, source)


def child_at(node: Node, step: str | int) -> Node | None:
    """The value under a key or at a position of a YAML node; None where there is none."""
    import yaml

    if isinstance(node, yaml.MappingNode):
        return next((value for key, value in node.value if key.value == step), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        found: Node = node.value[step]
        return found
    return None


def _broken(problem: str, mark: _Mark | None, source: str) -> ContentError:
    place = "" if mark is None else f":{mark.line + FIRST_LINE}"
    return ContentError(f"{source}{place}: front matter: {problem}", allowed="a YAML mapping of plain values", do="correct this line")
