"""Job: apply a template to profiles."""

from __future__ import annotations

from pathlib import Path

import msgspec

from kb.domain.template import Template
from kb.domain.version import parse_ref
from kb.errors import ContentError, UsageError
from kb.workflow.casebook import Casebook


def template_named(casebook: Casebook, name: str) -> Template:
    """A template by file (``*.json``) or by record reference."""
    path = Path(name)
    if path.suffix == ".json":
        return _from_file(path)
    record = casebook.store.get(parse_ref(name)).record
    if record.template is None:
        raise UsageError(f"{name} is a {record.kind}, not a template", allowed="a record of kind template", do="kb list --kind template")
    return record.template


def _from_file(path: Path) -> Template:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Template)
    except msgspec.MsgspecError as error:
        raise ContentError(f"{path.name}: {error}", do="compare with templates/diffusion-bottlenecks.json") from error
