"""The questions of ``kb.store.statements`` in PostgreSQL's words; row-level security and the view ``head`` answer for the session's role.

Parameters are those of the SQLite texts: lists come as one JSON array.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kb.store import statements

_VISIBLE: Final = """coalesce((
    SELECT e.kind FROM event e
    WHERE e.subject = v.sha256 AND e.kind IN ('yanked', 'restored') AND coalesce(e.detail ->> 'origin', v.origin) = v.origin
    ORDER BY e.id DESC LIMIT 1), 'restored') <> 'yanked'"""
_PASSING: Final = """
FROM head h JOIN version v ON v.id = h.version_id
WHERE v.tier >= %(tier)s
  AND (%(kinds)s::json IS NULL OR v.kind IN (SELECT json_array_elements_text(%(kinds)s::json)))
  AND (%(families)s::json IS NULL OR v.id IN (
    SELECT version_id FROM facet WHERE name = 'family' AND value IN (SELECT json_array_elements_text(%(families)s::json))))
  AND (%(model_types)s::json IS NULL OR v.id IN (
    SELECT version_id FROM facet WHERE name = 'model_type' AND value IN (SELECT json_array_elements_text(%(model_types)s::json))))
  AND (%(causes)s::json IS NULL OR v.id IN (
    SELECT version_id FROM facet WHERE name = 'cause' AND value IN (SELECT json_array_elements_text(%(causes)s::json))))
"""
_ENTRY: Final = """
SELECT v.id, v.slug, v.kind, v.provenance, v.language_share, v.created_ns, v.length, v.sha256, v.origin
FROM head h JOIN version v ON v.id = h.version_id"""

SPOKEN: Final[Mapping[str, str]] = {
    statements.NEWEST_VISIBLE: "".join(
        ("SELECT v.id FROM version v WHERE v.origin = %(origin)s AND v.slug = %(slug)s AND ", _VISIBLE, " ORDER BY v.n DESC LIMIT 1")
    ),
    statements.EXACT: "SELECT v.id FROM version v WHERE v.origin = %(origin)s AND v.slug = %(slug)s AND v.n = %(n)s",
    statements.ALIASED: """
SELECT v.id FROM event e JOIN version v ON v.sha256 = e.subject AND v.n::text = e.detail ->> 'n'
WHERE e.kind = 'aliased' AND v.origin = %(origin)s AND v.slug = %(slug)s
  AND e.detail ->> 'origin' = v.origin AND e.detail ->> 'alias' = %(alias)s
ORDER BY e.id DESC LIMIT 1
""",
    statements.ALIASES: """
SELECT DISTINCT e.detail ->> 'alias' FROM event e JOIN version v ON v.sha256 = e.subject
WHERE e.kind = 'aliased' AND v.slug = %(slug)s ORDER BY 1
""",
    statements.VERSIONS: """
SELECT v.id, v.origin, v.n, v.sha256, v.author, v.created_ns, v.visibility, v.parent, v.generation, c.body
FROM version v JOIN content c ON c.sha256 = v.sha256
WHERE v.id IN (SELECT value::bigint FROM json_array_elements_text(%(ids)s::json))
ORDER BY v.id
""",
    statements.HISTORY: """
SELECT v.id FROM version v WHERE v.slug = %(slug)s AND (%(origin)s::text IS NULL OR v.origin = %(origin)s) ORDER BY v.id
""",
    statements.REVISIONS: """
SELECT v.origin, v.n, v.sha256, v.author, v.created_ns, v.visibility, v.provenance, v.parent, v.generation
FROM version v WHERE v.slug = %(slug)s AND (%(origin)s::text IS NULL OR v.origin = %(origin)s) ORDER BY v.id
""",
    statements.DECIDING_EVENTS_OF_SLUG: """
SELECT e.subject, e.kind, e.detail ->> 'origin' FROM event e
WHERE e.subject IN (SELECT sha256 FROM version WHERE slug = %(slug)s) AND e.kind IN (SELECT json_array_elements_text(%(kinds)s::json))
ORDER BY e.id
""",
    statements.SLUGS: "SELECT DISTINCT slug FROM version",
    statements.SUMMARIES: "".join(
        (
            "SELECT v.id, v.origin, v.slug, v.n, v.kind, v.provenance, v.language_share, v.created_ns, v.sha256",
            _PASSING,
            "ORDER BY v.id",
        )
    ),
    statements.LISTING: "".join(("SELECT v.id, v.language_share, v.provenance, v.created_ns, v.length", _PASSING, "ORDER BY v.id")),
    statements.ENTRIES: "".join((_ENTRY, " ORDER BY v.id")),
    statements.ENTRIES_OF: "".join((_ENTRY, " WHERE h.slug IN (SELECT json_array_elements_text(%(slugs)s::json)) ORDER BY v.id")),
    statements.FACETS: """
SELECT f.version_id, f.name, f.value FROM facet f JOIN head h ON h.version_id = f.version_id ORDER BY f.version_id, f.name, f.value
""",
    statements.FACETS_OF: """
SELECT version_id, name, value FROM facet
WHERE version_id IN (SELECT value::bigint FROM json_array_elements_text(%(ids)s::json)) ORDER BY version_id, name, value
""",
    statements.HEADS: "SELECT count(*), coalesce(sum(version_id), 0)::bigint FROM head",
    statements.VERSIONS_NEWEST_FIRST: "SELECT slug, generation FROM version ORDER BY id DESC",
    statements.EVENTS_NEWEST_FIRST: """
SELECT v.slug, e.generation FROM event e JOIN version v ON v.sha256 = e.subject ORDER BY e.id DESC
""",
    statements.IDS_OF: "SELECT id FROM version WHERE slug IN (SELECT json_array_elements_text(%(slugs)s::json)) ORDER BY id",
    statements.POSTINGS_AMONG: """
SELECT p.version_id, p.count, p.length FROM posting p JOIN head h ON h.version_id = p.version_id
WHERE p.token = %(token)s AND p.version_id IN (SELECT value::bigint FROM json_array_elements_text(%(ids)s::json))
ORDER BY p.version_id
""",
    statements.ALL_TOKENS: """
SELECT p.token, count(*) FROM posting p JOIN head h ON h.version_id = p.version_id GROUP BY p.token ORDER BY p.token
""",
    statements.ALL_POSTINGS: """
SELECT p.version_id, p.count FROM posting p JOIN head h ON h.version_id = p.version_id ORDER BY p.token, p.version_id
""",
    statements.DECIDING_EVENTS: """
SELECT subject, kind, detail ->> 'origin' FROM event WHERE kind IN (SELECT json_array_elements_text(%(kinds)s::json)) ORDER BY id
""",
    statements.POSTINGS: """
SELECT p.version_id, p.count, p.length FROM posting p JOIN head h ON h.version_id = p.version_id
WHERE p.token = %(token)s ORDER BY p.version_id
""",
    statements.EVENTS: "SELECT id, kind, subject, author, at_ns, detail::text FROM event ORDER BY id",
    statements.EVENTS_OF: "SELECT id, kind, subject, author, at_ns, detail::text FROM event WHERE subject = %(subject)s ORDER BY id",
    statements.GENERATION: "SELECT generation FROM counter",
    # Who asks is part of the identity: a cache filled by one role must not answer for another.
    statements.STATE: """
SELECT CASE key WHEN 'identity' THEN md5(concat_ws(' ', value, mine(), shared())) ELSE value END FROM state WHERE key = %(key)s
""",
    statements.DIM: "SELECT dim FROM embedding WHERE model_id = %(model_id)s LIMIT 1",
    statements.VECTORS: """
SELECT version_id, field, vector_send(vector) FROM embedding
WHERE model_id = %(model_id)s AND generation > %(generation)s ORDER BY generation, id
""",
    statements.TOKENS_OF: """
SELECT version_id, token, count FROM posting
WHERE version_id IN (SELECT value::bigint FROM json_array_elements_text(%(ids)s::json)) ORDER BY version_id, token
""",
    statements.VECTORS_OF: """
SELECT version_id, model_id, field, dim, vector_send(vector) FROM embedding
WHERE version_id IN (SELECT value::bigint FROM json_array_elements_text(%(ids)s::json)) ORDER BY version_id, id
""",
    statements.SHARES_OF: """
SELECT id, language_share FROM version WHERE id IN (SELECT value::bigint FROM json_array_elements_text(%(ids)s::json)) ORDER BY id
""",
}
"""SQLite's text to ours; a test holds both lists together."""
NEWEST_FIRST: Final = frozenset((statements.VERSIONS_NEWEST_FIRST, statements.EVENTS_NEWEST_FIRST))
"""Read until far enough back: the rows stay on the server."""
