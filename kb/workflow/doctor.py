"""Job: check the installation and the workspace, and repair what is only a cache."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import packages_distributions
from typing import Final

import msgspec

from kb.domain.protocols import Progress
from kb.domain.record import Record
from kb.domain.text import Text
from kb.errors import KbError
from kb.index.cache import IDENTITY, open_cached, refresh
from kb.library.catalogue import load_catalogue
from kb.library.location import library_root
from kb.library.records import read_records
from kb.store.examination import Examined
from kb.workflow.casebook import Casebook, open_casebook, open_place
from kb.workflow.workspace import Workspace

OWN_DISTRIBUTION = "diagnosis-recipes"
_SHOWN: Final = 5


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One thing looked at; ``repaired`` when it was wrong and is right now."""

    name: str
    ok: bool
    detail: Text
    repaired: bool = False


def examine(place: Workspace, progress: Progress, *, repair: bool = False) -> tuple[Check, ...]:
    """Every check; one that cannot be made is reported as bad with its reason.

    ``repair`` rebuilds caches only (the heads of slugs, the index files): what is published is never touched.
    """
    checks = [_name_clash()]
    looks = (("library", _library), ("store", lambda: _store(place, progress, repair=repair)))
    for name, look in looks:
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


def _store(place: Workspace, progress: Progress, *, repair: bool) -> Iterator[Check]:
    with open_casebook(place, progress) as casebook:
        store = casebook.store
        yield Check(
            name="store",
            ok=not casebook.notes,
            detail=Text(
                zh=f"{place.shown}：可见记录 {len(store.summaries())} 条，第 {store.generation()} 代",
                en=f"{place.shown}: {len(store.summaries())} visible records, generation {store.generation()}",
            ),
        )
        yield from _examined(place, repair=repair)
        yield _vectors(casebook)
        yield _index(casebook, repair=repair)
        yield _artefacts(casebook)


def _examined(place: Workspace, *, repair: bool) -> Iterator[Check]:
    """The file against itself, read apart from the casebook so that a repair is seen."""
    found = _reexamined(place)
    if repair and any(item.repairable and not item.ok for item in found):
        store = open_place(place, writable=True)
        try:
            store.rebuild_heads()
        finally:
            store.close()
    again = {item.name: item for item in (_reexamined(place) if repair else found)}
    for item in found:
        now = again[item.name]
        words = "; ".join(now.wrong) if now.wrong else f"{now.count}"
        yield Check(name=f"store {item.name}", ok=now.ok, detail=Text(zh=words, en=words), repaired=now.ok and not item.ok)


def _reexamined(place: Workspace) -> tuple[Examined, ...]:
    store = open_place(place, writable=False)
    try:
        return store.examine()
    finally:
        store.close()


def _vectors(casebook: Casebook) -> Check:
    """Every visible record is found by the configured model."""
    model_id = casebook.embedder().model_id
    block = casebook.store.vectors_since(0, model_id)
    held = {int.from_bytes(block.ids[at : at + 8], "little") for at in range(0, len(block.ids), 8)}
    visible = casebook.store.summaries()
    missing = [str(item.ref) for item in visible if item.id not in held]
    detail = Text(zh=f"模型 {model_id} 的向量 {len(block.ids) // 8} 条", en=f"{len(block.ids) // 8} vectors of model {model_id}")
    if missing:
        named = ", ".join(missing[:_SHOWN])
        detail = Text(
            zh=f"{len(missing)} 条记录没有 {model_id} 的向量：{named}", en=f"{len(missing)} records without vectors of {model_id}: {named}"
        )
    return Check(name="vectors", ok=bool(held) and not missing, detail=detail)


def _index(casebook: Casebook, *, repair: bool) -> Check:
    """The index cache: an unusable one costs time, never an answer, and is the one thing a repair makes anew."""
    model_id, folder = casebook.embedder().model_id, casebook.workspace.vectors
    identity = casebook.store.state(IDENTITY) or ""
    cached = open_cached(folder, model_id, identity=identity)
    usable = cached is not None and cached.generation <= casebook.store.generation()
    if usable and cached is not None:
        words = Text(
            zh=f"{len(cached.ids)} 条向量，第 {cached.generation} 代", en=f"{len(cached.ids)} vectors, generation {cached.generation}"
        )
        return Check(name="index", ok=True, detail=words)
    if repair:
        refresh(casebook.store, folder, model_id)
        return Check(name="index", ok=True, repaired=True, detail=Text(zh="已重建", en="rebuilt"))
    present = any(folder.glob("*.manifest.json")) if folder.is_dir() else False
    detail = Text(
        zh="缓存不可用，搜索改读库（结果相同，较慢）；运行 kb doctor --repair 重建",
        en="the cache is unusable, searches read the store (same answers, slower); kb doctor --repair rebuilds it",
    )
    return Check(name="index", ok=not present, detail=detail)


def _artefacts(casebook: Casebook) -> Check:
    """Attached sessions: there, and as they were attached."""
    kept = casebook.artefacts
    records: list[Record] = [item.record for item in casebook.store.versions([row.id for row in casebook.store.summaries()]).values()]
    named = {name: record.slug for record in records for name in record.sessions}
    wrong = []
    for name in sorted({*named, *kept.names()}):
        try:
            kept.get(name)
        except KbError as error:
            wrong.append(f"{named.get(name, name[:12])}: {error.what}")
    detail = Text(zh=f"{len(named)} 份附带采集", en=f"{len(named)} attached sessions")
    if wrong:
        detail = Text(zh="; ".join(wrong[:_SHOWN]), en="; ".join(wrong[:_SHOWN]))
    return Check(name="sessions", ok=not wrong, detail=detail)
