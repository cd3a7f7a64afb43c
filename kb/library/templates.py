"""Diagnosis templates: one JSON file each, published as records like everything else."""

from __future__ import annotations

import msgspec

from kb.domain.record import Record, checked_slug
from kb.domain.template import Check, Template
from kb.domain.text import Lang, Text
from kb.errors import ContentError, UsageError
from kb.library.article_template import is_article_form, read_article_template, write_article_template
from kb.library.decoding import decode_json

TEMPLATE_SCHEMA = 1


def parse_template(data: bytes, *, source: str) -> Template:
    """Read a template, in this product's form or in the article's with Chinese keys.

    Raises ContentError naming ``source``, the place and what is allowed there.
    """
    if is_article_form(data):
        template = read_article_template(data, source=source)
    else:
        template = decode_json(data, msgspec.json.Decoder(Template), source=source)
    if template.schema > TEMPLATE_SCHEMA:
        raise ContentError(f"{source}: $.schema: {template.schema} is newer than {TEMPLATE_SCHEMA}", do="upgrade diagnosis-recipes")
    if not template.checks:
        raise ContentError(f"{source}: $.checks: empty", allowed="one check or more", do="name the causes to judge")
    try:
        checked_slug(template.slug)
    except UsageError as error:
        raise ContentError(f"{source}: $.slug: {error.what}", allowed=error.allowed, do=error.do) from error
    return template


def write_template(template: Template, *, article: bool = False) -> bytes:
    """``template`` as a file: this product's form with both languages, or the ``article``'s with Chinese keys."""
    if article:
        return write_article_template(template)
    return msgspec.json.format(msgspec.json.encode(template), indent=2) + b"\n"


def template_record(template: Template) -> Record:
    """The record of ``template``: its name, description, pitfalls and models, and a body that lists the checks."""
    return Record(
        kind="template",
        slug=template.slug,
        title=template.name,
        summary=template.description,
        body=Text(zh=_listed(template.checks, "zh"), en=_listed(template.checks, "en")),
        tags=template.models + template.model_types,
        template=template,
        pitfalls=template.pitfalls,
    )


def _listed(checks: tuple[Check, ...], lang: Lang) -> str:
    return "\n".join(f"{at}. {_line(check, lang)}" for at, check in enumerate(checks, start=1))


def _line(check: Check, lang: Lang) -> str:
    limits = "".join(f" (`{name}` = {value:g})" for name, value in check.thresholds.items())
    reason = check.reason.pick(lang)
    return f"`{check.cause}`{limits}" + (f": {reason}" if reason else "")
