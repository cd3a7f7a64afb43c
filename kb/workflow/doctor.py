"""Job: check the installation and the workspace."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import packages_distributions

import msgspec

from kb.domain.canonical import content_hash
from kb.domain.protocols import Progress
from kb.domain.text import Text
from kb.errors import KbError
from kb.library.catalogue import load_catalogue
from kb.library.location import library_root
from kb.library.records import read_records
from kb.workflow.casebook import Casebook, open_casebook
from kb.workflow.workspace import Workspace

OWN_DISTRIBUTION = "diagnosis-recipes"


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One thing looked at."""

    name: str
    ok: bool
    detail: Text


def examine(place: Workspace, progress: Progress) -> tuple[Check, ...]:
    """Every check; one that cannot be made is reported as bad with its reason."""
    checks = [_name_clash()]
    for name, look in (("library", _library), ("store", lambda: _store(place, progress))):
        try:
            checks += look()
        except KbError as error:
            checks.append(Check(name=name, ok=False, detail=Text(zh=str(error), en=str(error))))
    return tuple(checks)


def _name_clash() -> Check:
    """Two unrelated distributions also install a top-level ``kb``; sharing an environment overwrites files."""
    owners = sorted(set(packages_distributions().get("kb", [])) - {OWN_DISTRIBUTION})
    if not owners:
        return Check(name="import name", ok=True, detail=Text(zh="kb 只属于本产品", en="kb belongs to this product alone"))
    names = ", ".join(owners)
    return Check(
        name="import name",
        ok=False,
        detail=Text(zh=f"{names} 也安装了名为 kb 的包；请卸载其一", en=f"{names} also installs a package named kb; uninstall one of them"),
    )


def _library() -> Iterator[Check]:
    root = library_root()
    found = load_catalogue(root)
    records = read_records(root)
    yield Check(
        name="library",
        ok=bool(records),
        detail=Text(
            zh=f"{len(records)} 条记录，{len(found.causes)} 个原因，{len(found.strategies)} 个策略，{len(found.socs)} 种芯片",
            en=f"{len(records)} records, {len(found.causes)} causes, {len(found.strategies)} strategies, {len(found.socs)} chips",
        ),
    )


def _store(place: Workspace, progress: Progress) -> Iterator[Check]:
    with open_casebook(place, progress) as casebook:
        summaries = casebook.store.summaries()
        yield Check(
            name="store",
            ok=True,
            detail=Text(
                zh=f"{place.database}：可见记录 {len(summaries)} 条，第 {casebook.store.generation()} 代",
                en=f"{place.database}: {len(summaries)} visible records, generation {casebook.store.generation()}",
            ),
        )
        yield _hashes(casebook)
        yield _vectors(casebook)


def _hashes(casebook: Casebook) -> Check:
    versions = casebook.store.versions([item.id for item in casebook.store.summaries()]).values()
    wrong = [str(version.ref) for version in versions if content_hash(version.record) != version.sha256]
    detail = Text(zh=f"核对 {len(versions)} 个哈希", en=f"{len(versions)} hashes recomputed")
    if wrong:
        detail = Text(zh=f"内容与哈希不符：{', '.join(wrong)}", en=f"content differs from its hash: {', '.join(wrong)}")
    return Check(name="hashes", ok=not wrong, detail=detail)


def _vectors(casebook: Casebook) -> Check:
    embedder = casebook.embedder()
    block = casebook.store.vectors_since(0, embedder.model_id)
    own = len(block.ids) // 8
    ok = own > 0
    return Check(
        name="vectors",
        ok=ok,
        detail=Text(zh=f"模型 {embedder.model_id} 的向量 {own} 条", en=f"{own} vectors of model {embedder.model_id}"),
    )
