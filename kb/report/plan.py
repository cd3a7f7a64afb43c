"""A plan as a document: what to run, what to expect, how to check, how to go back."""

from __future__ import annotations

from collections.abc import Iterator

from kb.domain.plan import Plan, PlanStep
from kb.domain.text import Lang
from kb.report.document import Block, Bullets, CodeBlock, Document, Heading, Note, Paragraph
from kb.report.labels import Labels, labels
from kb.report.numbers import percent


def plan_document(plan: Plan, lang: Lang) -> Document:
    """Steps in order."""
    words = labels(lang)
    blocks: list[Block] = [Heading(2, f"{words('plan')}: {plan.session}")]
    blocks += [Paragraph(note.pick(lang)) for note in plan.notes]
    if not plan.feasible:
        blocks.append(Note("caution", plan.closest.pick(lang)))
    if plan.expected is not None and plan.interval is not None:
        low, high = plan.interval
        blocks.append(Paragraph(f"{words('plan.together')}: {percent(plan.expected)} [{percent(low)}, {percent(high)}]"))
    for number, step in enumerate(plan.steps, start=1):
        blocks += _step(number, step, words)
    if plan.left_out:
        blocks.append(Bullets(tuple(f"{words('plan.left_out')}: {name}: {reason.pick(lang)}" for name, reason in plan.left_out)))
    return Document(tuple(blocks))


def _step(number: int, step: PlanStep, words: Labels) -> Iterator[Block]:
    yield Heading(3, f"{number}. {step.priority} · {step.title.pick(words.lang)} ({step.strategy})")
    if step.prerequisites:
        yield Bullets(tuple(f"{words('plan.before')}: {text.pick(words.lang)}" for text in step.prerequisites))
    for command in step.commands:
        state = words("command_verified") if command.verified else words("command_unverified")
        yield Bullets((f"{command.tool} {command.documented_for}: {state}".replace(" :", ":"),))
        yield CodeBlock(command.text)
    yield Bullets((*_facts(step, words), *(risk.pick(words.lang) for risk in step.risks)))


def _facts(step: PlanStep, words: Labels) -> Iterator[str]:
    tier = words(f"provenance.{step.provenance}")
    interval = f" [{percent(step.interval[0])}, {percent(step.interval[1])}] @ {step.interval_level:.0%}" if step.interval else ""
    per = words("per.sample") if step.per == "sample" else ""
    yield f"{words('expected')}: {percent(step.expected_gain_fraction)}{per}{interval} ({tier})"
    if step.effort is not None:
        yield f"{words('effort')}: {step.effort}"
        yield words("plan.simulatable") if step.simulatable else words("plan.not_simulatable")
    for key, text in (("verify", step.verify), ("plan.precision", step.precision_check), ("roll_back", step.roll_back)):
        if text.pick(words.lang):
            yield f"{words(key)}: {text.pick(words.lang)}"
    if step.files:
        yield f"{words('plan.files')}: {', '.join(file.name for file in step.files)}"
