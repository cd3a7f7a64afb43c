"""Jobs: a checked copy of the workspace while it is in use, and its return."""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import tempfile
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from kb.domain.protocols import Progress
from kb.errors import ConflictError, ContentError, StoreError
from kb.files import sync_folder
from kb.store.artefacts import FolderArtefacts
from kb.store.backup import back_up, require_sound, restore
from kb.workflow.archive import ZipSource
from kb.workflow.workspace import Workspace

FORMAT: Final = "diagnosis-recipes backup"
SCHEMA: Final = 1
MANIFEST: Final = "backup.json"
DATABASE: Final = "casebook.db"
ARTEFACTS: Final = "artefacts"
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)


class Manifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``files`` maps each member to the sha256 of its bytes."""

    format: str
    schema: int
    files: dict[str, str]


class BackedUp(msgspec.Struct, frozen=True, kw_only=True):
    """What a backup holds."""

    path: str
    size_b: int
    sessions: int


class Restored(msgspec.Struct, frozen=True, kw_only=True):
    """What came back, and where the store that was there before is kept."""

    sessions: int
    replaced: str | None


def back_up_workspace(place: Workspace, target: Path, progress: Progress) -> BackedUp:
    """Write the store and its attached sessions into the new zip file ``target``; others may read and write meanwhile.

    The copy is one snapshot, examined before it is packed; sessions are put before the versions that name them, so every
    session of the snapshot is in. Raises StoreError or ConflictError, and then leaves nothing.
    """
    if target.exists():
        raise ConflictError(f"{target} exists", allowed="a new file", do="choose another name")
    kept = FolderArtefacts(place.artefacts)
    fresh = target.with_name(f".{target.name}.{secrets.token_hex(8)}.part")
    try:
        with tempfile.TemporaryDirectory(dir=target.parent) as folder:
            copy = Path(folder) / DATABASE
            back_up(place.database, copy)
            names = tuple(kept.names())
            with zipfile.ZipFile(fresh, "x", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
                files = {DATABASE: _packed_file(archive, copy)}
                for done, name in enumerate(names):
                    progress("backup", done, len(names))
                    files[f"{ARTEFACTS}/{name}"] = _packed(archive, f"{ARTEFACTS}/{name}", kept.get(name))
                manifest = Manifest(format=FORMAT, schema=SCHEMA, files=files)
                _packed(archive, MANIFEST, msgspec.json.encode(manifest))
        with fresh.open("rb") as file:
            os.fsync(file.fileno())
        size = fresh.stat().st_size
        fresh.replace(target)
        sync_folder(target.parent)
    except OSError as error:
        raise StoreError(
            f"the backup was not written: {error.strerror}",
            allowed="a folder this user may write, with free space",
            do="name another place",
        ) from error
    finally:
        fresh.unlink(missing_ok=True)
    return BackedUp(path=str(target), size_b=size, sessions=len(names))


def restore_workspace(place: Workspace, backup: Path, *, force: bool, now: datetime | None = None) -> Restored:
    """Bring back what ``backup`` holds; every member is checked before anything is touched.

    A store that is already there needs ``force``; it is kept beside as ``casebook.db.replaced-TIME`` (also when it cannot be
    opened any more). Sessions are added, none is removed. Raises ContentError for what is no sound backup.
    """
    if place.database.exists() and not force:
        raise ConflictError(f"{place.database} exists", allowed="an empty workspace", do="add --force: the store there is kept beside")
    place.prepared()
    with tempfile.TemporaryDirectory(dir=place.home) as folder:
        copy = Path(folder) / DATABASE
        source = ZipSource(backup)
        try:
            manifest = _manifest(source, backup)
            _agree(source.unpack(DATABASE, copy), manifest.files[DATABASE], DATABASE)
            attached = sorted(name for name in manifest.files if name != DATABASE)
            for name in attached:
                _agree(hashlib.sha256(source.read(name)).hexdigest(), manifest.files[name], name)
            require_sound(copy)
            replaced = _set_aside(place.database, now or datetime.now(UTC))
            kept = FolderArtefacts(place.artefacts)
            for name in attached:
                kept.put(source.read(name))
        finally:
            source.close()
        restore(copy, place.database)
    # The index files copy what the store was; its new identity would make every reader refuse them.
    shutil.rmtree(place.vectors, ignore_errors=True)
    return Restored(sessions=len(attached), replaced=str(replaced) if replaced else None)


def _packed_file(archive: zipfile.ZipFile, path: Path) -> str:
    """Pack a large file without holding it in memory; its sha256."""
    member = zipfile.ZipInfo(path.name, _EPOCH)
    member.compress_type = zipfile.ZIP_DEFLATED
    with path.open("rb") as file, archive.open(member, "w", force_zip64=True) as packed:
        shutil.copyfileobj(file, packed, 2**20)
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _packed(archive: zipfile.ZipFile, name: str, data: bytes) -> str:
    archive.writestr(zipfile.ZipInfo(name, _EPOCH), data)
    return hashlib.sha256(data).hexdigest()


def _manifest(source: ZipSource, backup: Path) -> Manifest:
    names = set(source.names())
    if MANIFEST not in names:
        raise ContentError(
            f"{backup.name} is no backup: it has no {MANIFEST}", allowed="a file made by `kb backup`", do="name another file"
        )
    try:
        manifest = msgspec.json.decode(source.read(MANIFEST), type=Manifest)
    except msgspec.MsgspecError as error:
        raise ContentError(f"{backup.name}: {MANIFEST}: {error}", do="use another backup") from error
    if manifest.format != FORMAT or manifest.schema > SCHEMA or DATABASE not in manifest.files:
        raise ContentError(f"{backup.name}: {manifest.format!r}, schema {manifest.schema}", do="upgrade diagnosis-recipes")
    if set(manifest.files) | {MANIFEST} != names:
        raise ContentError(f"{backup.name}: its members are not those of its manifest", do="use another backup")
    return manifest


def _agree(seen: str, stated: str, name: str) -> None:
    if seen != stated:
        raise ContentError(f"{name} does not fit its hash", allowed="an undamaged backup", do="use another backup")


def _set_aside(database: Path, now: datetime) -> Path | None:
    """Keep the store that is there: a sound one as a copy (it stays in use until it is replaced), a broken one by moving it."""
    if not database.exists():
        return None
    place = database.with_name(f"{database.name}.replaced-{now.strftime('%Y%m%dT%H%M%S')}-{secrets.token_hex(2)}")
    if _is_sound(database):
        back_up(database, place)
    else:
        for suffix in ("", "-wal", "-shm"):
            part = database.with_name(database.name + suffix)
            if part.exists():
                part.rename(place.with_name(place.name + suffix))
    return place


def _is_sound(database: Path) -> bool:
    try:
        require_sound(database)
    except StoreError:
        return False
    return True
