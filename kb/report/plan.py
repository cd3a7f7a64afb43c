"""A plan as a document: what to run, what to expect, how to check, how to go back."""

from __future__ import annotations

from collections.abc import Iterator

from kb.domain.plan import Plan, PlanStep
from kb.domain.text import Lang
from kb.report.document import Block, Bullets, CodeBlock, Document, Heading
from kb.report.labels import Labels, labels
from kb.report.numbers import percent


def plan_document(plan: Plan, lang: Lang) -> Document:
    """Steps in order."""
    words = labels(lang)
    blocks: list[Block] = [Heading(2, f"{words('plan')}: {plan.session}")]
    for number, step in enumerate(plan.steps, start=1):
        blocks += _step(number, step, words)
    return Document(tuple(blocks))


def _step(number: int, step: PlanStep, words: Labels) -> Iterator[Block]:
    yield Heading(3, f"{number}. {step.priority} · {step.title.pick(words.lang)} ({step.strategy})")
    for command in step.commands:
        state = words("command_verified") if command.verified else words("command_unverified")
        yield Bullets((f"{command.tool} {command.documented_for}: {state}".replace(" :", ":"),))
        yield CodeBlock(command.text)
    lines = [f"{words('expected')}: {percent(step.expected_gain_fraction)} ({words(f'provenance.{step.provenance}')})"]
    lines += [f"{words('verify')}: {step.verify.pick(words.lang)}"] if step.verify.pick(words.lang) else []
    lines += [f"{words('roll_back')}: {step.roll_back.pick(words.lang)}"] if step.roll_back.pick(words.lang) else []
    yield Bullets((*lines, *(risk.pick(words.lang) for risk in step.risks)))
