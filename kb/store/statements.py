"""SQL: fixed texts with bound parameters, lists bound as one JSON array. The reading side uses nothing else.

The writer shares ``NEWEST_VISIBLE``, so that both sides agree on what is visible, and has ``INSERT_POSTING``.
"""

from __future__ import annotations

from typing import Final

# Hidden: the newest event that withdraws or restores this content in this origin withdraws it.
_VISIBLE: Final = """coalesce((
    SELECT e.kind FROM event e
    WHERE e.subject = v.sha256 AND e.kind IN ('yanked', 'restored')
      AND coalesce(json_extract(e.detail, '$.origin'), v.origin) = v.origin
    ORDER BY e.id DESC LIMIT 1), 'restored') <> 'yanked'"""
NEWEST_VISIBLE: Final = "".join(
    ("SELECT v.id FROM version v WHERE v.origin = :origin AND v.slug = :slug AND ", _VISIBLE, " ORDER BY v.n DESC LIMIT 1")
)
NEWEST_OF_ALL: Final = "".join(
    (
        "SELECT v.id FROM version v WHERE v.slug = :slug AND ",
        _VISIBLE,
        " ORDER BY CASE v.origin WHEN 'workspace' THEN 0 WHEN 'team' THEN 1 ELSE 2 END, v.n DESC LIMIT 1",
    )
)
EXACT: Final = "SELECT v.id FROM version v WHERE v.origin = :origin AND v.slug = :slug AND v.n = :n"
# The newest event that gives the alias to a version of this origin decides.
ALIASED: Final = """
SELECT v.id FROM event e JOIN version v ON v.sha256 = e.subject AND v.n = json_extract(e.detail, '$.n')
WHERE e.kind = 'aliased' AND v.origin = :origin AND v.slug = :slug
  AND json_extract(e.detail, '$.origin') = v.origin AND json_extract(e.detail, '$.alias') = :alias
ORDER BY e.id DESC LIMIT 1
"""
ALIASES: Final = """
SELECT DISTINCT json_extract(e.detail, '$.alias') FROM event e JOIN version v ON v.sha256 = e.subject
WHERE e.kind = 'aliased' AND v.slug = :slug ORDER BY 1
"""
VERSIONS: Final = """
SELECT v.id, v.origin, v.n, v.sha256, v.author, v.created_ns, v.visibility, v.parent, v.generation, c.body
FROM version v JOIN content c ON c.sha256 = v.sha256
WHERE v.id IN (SELECT value FROM json_each(:ids))
ORDER BY v.id
"""
HISTORY: Final = "SELECT v.id FROM version v WHERE v.slug = :slug AND (:origin IS NULL OR v.origin = :origin) ORDER BY v.id"
REVISIONS: Final = """
SELECT v.origin, v.n, v.sha256, v.author, v.created_ns, v.visibility, v.provenance, v.parent, v.generation
FROM version v WHERE v.slug = :slug AND (:origin IS NULL OR v.origin = :origin) ORDER BY v.id
"""
DECIDING_EVENTS_OF_SLUG: Final = """
SELECT e.subject, e.kind, json_extract(e.detail, '$.origin') FROM event e
WHERE e.subject IN (SELECT sha256 FROM version WHERE slug = :slug) AND e.kind IN (SELECT value FROM json_each(:kinds)) ORDER BY e.id
"""
SLUGS: Final = "SELECT DISTINCT slug FROM version"
# In the facet filters an IN list is computed once and only when its parameter is given.
_PASSING: Final = """
FROM head h JOIN version v ON v.id = h.version_id
WHERE v.tier >= :tier
  AND (:kinds IS NULL OR v.kind IN (SELECT value FROM json_each(:kinds)))
  AND (:families IS NULL OR v.id IN (
    SELECT version_id FROM facet WHERE name = 'family' AND value IN (SELECT value FROM json_each(:families))))
  AND (:model_types IS NULL OR v.id IN (
    SELECT version_id FROM facet WHERE name = 'model_type' AND value IN (SELECT value FROM json_each(:model_types))))
  AND (:causes IS NULL OR v.id IN (
    SELECT version_id FROM facet WHERE name = 'cause' AND value IN (SELECT value FROM json_each(:causes))))
ORDER BY v.id
"""
SUMMARIES: Final = "".join(("SELECT v.id, v.origin, v.slug, v.n, v.kind, v.provenance, v.language_share, v.created_ns, v.sha256", _PASSING))
LISTING: Final = "".join(("SELECT v.id, v.language_share, v.provenance, v.created_ns, v.length", _PASSING))
_ENTRY: Final = """
SELECT v.id, v.slug, v.kind, v.provenance, v.language_share, v.created_ns, v.length, v.sha256, v.origin
FROM head h JOIN version v ON v.id = h.version_id"""
ENTRIES: Final = "".join((_ENTRY, " ORDER BY v.id"))
ENTRIES_OF: Final = "".join((_ENTRY, " WHERE h.slug IN (SELECT value FROM json_each(:slugs)) ORDER BY v.id"))
FACETS: Final = (
    "SELECT f.version_id, f.name, f.value FROM facet f JOIN head h ON h.version_id = f.version_id ORDER BY f.version_id, f.name, f.value"
)
FACETS_OF: Final = """
SELECT version_id, name, value FROM facet WHERE version_id IN (SELECT value FROM json_each(:ids)) ORDER BY version_id, name, value
"""
HEADS: Final = "SELECT count(*), coalesce(sum(version_id), 0) FROM head"
VERSIONS_NEWEST_FIRST: Final = "SELECT slug, generation FROM version ORDER BY id DESC"
EVENTS_NEWEST_FIRST: Final = """
SELECT v.slug, e.generation FROM event e JOIN version v ON v.sha256 = e.subject ORDER BY e.id DESC
"""
IDS_OF: Final = "SELECT id FROM version WHERE slug IN (SELECT value FROM json_each(:slugs)) ORDER BY id"
DECIDING_EVENTS: Final = """
SELECT subject, kind, json_extract(detail, '$.origin') FROM event WHERE kind IN (SELECT value FROM json_each(:kinds)) ORDER BY id
"""
# One record brings hundreds of rows: as plain tuples they cost half of what named parameters do.
INSERT_POSTING: Final = "INSERT INTO posting (token, version_id, count, length) VALUES (?, ?, ?, ?)"
POSTINGS: Final = """
SELECT p.version_id, p.count, p.length FROM posting p JOIN head h ON h.version_id = p.version_id
WHERE p.token = :token ORDER BY p.version_id
"""
POSTINGS_AMONG: Final = """
SELECT p.version_id, p.count, p.length
FROM json_each(:ids) j CROSS JOIN posting p ON p.token = :token AND p.version_id = j.value JOIN head h ON h.version_id = p.version_id
ORDER BY p.version_id
"""
ALL_TOKENS: Final = """
SELECT p.token, count(*) FROM posting p JOIN head h ON h.version_id = p.version_id GROUP BY p.token ORDER BY p.token
"""
ALL_POSTINGS: Final = """
SELECT p.version_id, p.count FROM posting p JOIN head h ON h.version_id = p.version_id ORDER BY p.token, p.version_id
"""
EVENTS: Final = "SELECT id, kind, subject, author, at_ns, detail FROM event ORDER BY id"
# One text for both would read all events: the engine plans before it knows whether a subject is given.
EVENTS_OF: Final = "SELECT id, kind, subject, author, at_ns, detail FROM event WHERE subject = :subject ORDER BY id"
GENERATION: Final = "SELECT generation FROM counter"
STATE: Final = "SELECT value FROM state WHERE key = :key"
DIM: Final = "SELECT dim FROM vector WHERE model_id = :model_id LIMIT 1"
VECTORS: Final = """
SELECT version_id, field, values_f32 FROM vector
WHERE model_id = :model_id AND generation > :generation ORDER BY generation, id
"""
TOKENS_OF: Final = """
SELECT version_id, token, count FROM posting WHERE version_id IN (SELECT value FROM json_each(:ids)) ORDER BY version_id, token
"""
VECTORS_OF: Final = """
SELECT version_id, model_id, field, dim, values_f32 FROM vector
WHERE version_id IN (SELECT value FROM json_each(:ids)) ORDER BY version_id, id
"""
SHARES_OF: Final = "SELECT id, language_share FROM version WHERE id IN (SELECT value FROM json_each(:ids)) ORDER BY id"
