"""``kb publish``"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, get_args

from kb.domain.case import Hit
from kb.domain.record import Record
from kb.domain.text import Text
from kb.domain.version import Visibility
from kb.errors import ExitCode, UsageError
from kb.report.payload import plain, version_payload
from kb.report.plain import PlainRenderer
from kb.report.records import draft_document
from kb.session.session import Session
from kb.workflow.casebook import Casebook, open_casebook
from kb.workflow.compare import pair
from kb.workflow.diagnose import diagnose_paths, diagnose_sessions
from kb.workflow.draft import Wording, draft_from_file, draft_from_sessions, is_record_file
from kb.workflow.nearness import near_records
from kb.workflow.publish import Published, publish, with_sessions
from kb.workflow.workspace import workspace
from kb_cli.authorship import author
from kb_cli.command import Argument, Command, Common, Flag
from kb_cli.console import Console

VISIBILITIES: tuple[Visibility, ...] = get_args(Visibility)


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """What to publish, under which name."""

    source: Annotated[Path, Argument("A recipe file (.md, .json), or a profile to publish the diagnosis of.", "SOURCE")]
    after: Annotated[Path | None, Flag("--after", "The profile after the change: its gain is recomputed and recorded.", "PATH")] = None
    strategy: Annotated[str | None, Flag("--strategy", "The strategy tried between both profiles.", "STRATEGY")] = None
    slug: Annotated[str | None, Flag("--slug", "Name of the record; default from model and cause.", "SLUG")] = None
    title_zh: Annotated[str, Flag("--title-zh", "Chinese title.")] = ""
    title_en: Annotated[str, Flag("--title-en", "English title.")] = ""
    tag: Annotated[tuple[str, ...], Flag("--tag", "A tag; may be repeated.", "TAG")] = ()
    author: Annotated[str | None, Flag("--author", "Author; default KB_AUTHOR, else anonymous.", "NAME")] = None
    visibility: Annotated[str, Flag("--visibility", "Who may see it.", choices=VISIBILITIES)] = "private"
    overlay: Annotated[bool, Flag("--overlay", "Stand in front of the library's record of the same slug.")] = False
    expect_parent: Annotated[str | None, Flag("--expect-parent", "Publish only on top of this content hash.", "SHA256")] = None
    preview: Annotated[bool, Flag("--preview", "Show the record and what is near to it; publish nothing.")] = False


def run(options: Options, console: Console) -> int:
    """Publish and say which version it became."""
    if (options.after is None) != (options.strategy is None):
        raise UsageError("--after and --strategy go together", do="give both, or neither")
    with open_casebook(workspace(), console.progress(), writable=not options.preview) as casebook:
        record = _from_file(options) if is_record_file(options.source) else _from_profile(options, casebook)
        if options.preview:
            return preview(casebook, record, str(options.source), console)
        published = publish(
            casebook,
            record,
            author=author(options.author),
            visibility=visibility(options.visibility),
            expect_parent=options.expect_parent,
            overlay=options.overlay,
        )
    return announce(published, console)


def visibility(name: str) -> Visibility:
    """A checked option as the domain's word."""
    return next(value for value in VISIBILITIES if value == name)


def announce(published: Published, console: Console) -> int:
    """Say what was published, what the audit doubts and what was changed on the way in."""
    version = published.version
    for remark in published.remarks:
        console.remark(remark.zh, remark.en)
    if console.as_json:
        audit = [plain(note) for note in published.notes]
        console.json({**version_payload(version), "ref": str(version.ref), "created": published.created, "audit": audit})
        return ExitCode.DONE
    for note in published.notes:
        console.remark(f"核查 [{note.severity}] {note.rule}：{note.text.zh}", f"audit [{note.severity}] {note.rule}: {note.text.en}")
    if published.created:
        console.say(f"已发布 {version.ref}（{version.sha256[:12]}）", f"published {version.ref} ({version.sha256[:12]})")
    else:
        console.say(f"内容没有变化，仍为 {version.ref}", f"content unchanged: still {version.ref}")
    return ExitCode.DONE


def preview(casebook: Casebook, record: Record, made_from: str, console: Console) -> int:
    """Show the draft and its near neighbours; nothing is written."""
    near = near_records(casebook, record)
    if console.as_json:
        neighbours = [{"ref": f"{hit.slug}@{hit.version}", "similarity_cosine": hit.similarity} for hit in near]
        console.json({"record": plain(record), "near": neighbours, "published": False})
        return ExitCode.DONE
    console.text(PlainRenderer().render(draft_document(record, made_from, console.lang)))
    warn_of_near(near, console)
    return ExitCode.DONE


def warn_of_near(near: Sequence[Hit], console: Console) -> None:
    """Ask whether the record should rather be a version of one that is there."""
    for hit in near:
        where, cosine = f"{hit.origin}:{hit.slug}@{hit.version}", f"{hit.similarity or 0.0:.2f}"
        console.remark(
            f"与 {where} 相近（文本余弦 {cosine}）：是否应作为它的新版本发布？",
            f"near to {where} (cosine of the words {cosine}): publish as a new version of it?",
        )


def _from_file(options: Options) -> Record:
    if options.slug or options.after:
        raise UsageError("--slug and --after belong to profiles", do="a recipe file names its own slug in its front matter")
    return draft_from_file(options.source)


def _from_profile(options: Options, casebook: Casebook) -> Record:
    diagnosed = diagnose_paths((options.source,))
    wording = Wording(slug=options.slug, title=_title(options), tags=options.tag)
    sessions: tuple[Session, ...] = diagnosed.sessions
    if options.after is None:
        record = draft_from_sessions(diagnosed, wording)
    else:
        from kb.compare.comparison import compare

        before, after = pair(diagnosed.sessions, diagnose_paths((options.after,)).sessions)
        diagnosed = diagnose_sessions(diagnosed.sessions, casebook.catalogue)
        record = draft_from_sessions(diagnosed, wording, comparison=compare(before, after), strategy=options.strategy)
        sessions = (before, after)
    return with_sessions(record, sessions, casebook.artefacts)


def _title(options: Options) -> Text | None:
    if not (options.title_zh or options.title_en):
        return None
    return Text(zh=options.title_zh or options.title_en, en=options.title_en or options.title_zh)


COMMAND = Command(
    "Publish a recipe file, or the diagnosis of a profile, as a new version.",
    Options,
    run,
    ("kb publish recipe.md", "kb publish before.prof --after after.prof --strategy use_fused_attention --slug my-model-attention"),
)
