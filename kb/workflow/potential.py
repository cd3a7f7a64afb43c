"""Job: what past cases promise before anything is tried, and where a session stands among them."""

from __future__ import annotations

from typing import Final

import msgspec

from kb.domain.potential import Potential
from kb.domain.recommendation import Percentile
from kb.files import write_whole
from kb.index.cache import IDENTITY
from kb.recommend.percentile import Distribution, Distributions, distributions, percentiles
from kb.recommend.potential import Wanted, potential, trials_of
from kb.text.tokens import tokenize
from kb.workflow.casebook import Casebook
from kb.workflow.diagnose import Diagnosed
from kb.workflow.search import contexts_of

FILE: Final = "distributions.json"
_READ: Final = 5000
"""Records read for one strategy at most, the newest."""


class _Kept(msgspec.Struct, frozen=True, kw_only=True):
    """Distributions with the store and generation they belong to."""

    key: str
    known: dict[str, dict[str, Distribution]]


def potential_of(casebook: Casebook, strategy: str, wanted: Wanted) -> Potential:
    """The potential of a strategy, named by id or alias. Raises NotFoundError for an unknown one."""
    name = casebook.catalogue.strategy(strategy).id
    token = tokenize(name)[0]
    ids = [row.id for row in casebook.store.postings([token]).get(token, ())][-_READ:]
    trials = [trial for version in casebook.store.versions(ids).values() for trial in trials_of(str(version.ref), version.record, name)]
    return potential(name, trials, wanted, casebook.catalogue)


def session_percentiles(casebook: Casebook, diagnosed: Diagnosed) -> tuple[Percentile, ...]:
    """Where the session with most causes stands among the casebook's cases."""
    context = max(contexts_of(diagnosed), key=lambda item: len(item.causes))
    return percentiles(context, _known(casebook))


def _known(casebook: Casebook) -> Distributions:
    """From the workspace's cache when it belongs to this very casebook, else read from all records (half a second at 10,000) and kept."""
    key = f"{casebook.store.state(IDENTITY) or ''} {casebook.store.generation()}"
    if casebook.memo.get("distributed") != key:
        casebook.memo["distributions"] = _kept(casebook, key)
        casebook.memo["distributed"] = key
    known: Distributions = casebook.memo["distributions"]
    return known


def _kept(casebook: Casebook, key: str) -> Distributions:
    store, path = casebook.store, casebook.workspace.cache / FILE
    try:
        kept = msgspec.json.decode(path.read_bytes(), type=_Kept)
        if kept.key == key:
            return kept.known
    except (OSError, ValueError):  # msgspec's errors are ValueErrors
        pass
    versions = store.versions([row.id for row in store.summaries()])
    known = distributions(version.record for version in versions.values())
    try:
        write_whole(path, [msgspec.json.encode(_Kept(key=key, known=known))])
    except OSError:
        return known  # a cache that cannot be written costs time, nothing else
    return known
