"""SQL: fixed texts with bound parameters, lists bound as one JSON array. The reading side uses nothing else.

The writer shares ``NEWEST_VISIBLE``, so that both sides agree on what is visible, and has ``INSERT_POSTING``.
"""

from __future__ import annotations

from typing import Final

NEWEST_VISIBLE: Final = """
SELECT v.id FROM version v
WHERE v.origin = :origin AND v.slug = :slug
  AND NOT EXISTS (SELECT 1 FROM event e WHERE e.subject = v.sha256 AND e.kind = 'yanked')
ORDER BY v.n DESC LIMIT 1
"""
EXACT: Final = "SELECT v.id FROM version v WHERE v.origin = :origin AND v.slug = :slug AND v.n = :n"
VERSIONS: Final = """
SELECT v.id, v.origin, v.n, v.sha256, v.author, v.created_ns, v.visibility, v.parent, v.generation, c.body
FROM version v JOIN content c ON c.sha256 = v.sha256
WHERE v.id IN (SELECT value FROM json_each(:ids))
ORDER BY v.id
"""
HISTORY: Final = "SELECT v.id FROM version v WHERE v.slug = :slug AND (:origin IS NULL OR v.origin = :origin) ORDER BY v.id"
SLUGS: Final = "SELECT DISTINCT slug FROM version"
# In the facet filters an IN list is computed once and only when its parameter is given.
SUMMARIES: Final = """
SELECT v.id, v.origin, v.slug, v.n, v.kind, v.provenance, v.language_share, v.created_ns, v.sha256
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
DECIDING_EVENTS: Final = "SELECT subject, kind FROM event WHERE kind IN (SELECT value FROM json_each(:kinds)) ORDER BY id"
# One record brings hundreds of rows: as plain tuples they cost half of what named parameters do.
INSERT_POSTING: Final = "INSERT INTO posting (token, version_id, count, length) VALUES (?, ?, ?, ?)"
POSTINGS: Final = """
SELECT p.version_id, p.count, p.length FROM posting p JOIN head h ON h.version_id = p.version_id
WHERE p.token = :token ORDER BY p.version_id
"""
EVENTS: Final = "SELECT id, kind, subject, author, at_ns, detail FROM event WHERE :subject IS NULL OR subject = :subject ORDER BY id"
GENERATION: Final = "SELECT generation FROM counter"
STATE: Final = "SELECT value FROM state WHERE key = :key"
DIM: Final = "SELECT dim FROM vector WHERE model_id = :model_id LIMIT 1"
VECTORS: Final = """
SELECT version_id, field, values_f32 FROM vector
WHERE model_id = :model_id AND generation > :generation ORDER BY generation, id
"""
