"""The search data of stored versions, to carry them from one store to another without preparing them again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from kb.domain.protocols import Prepared
from kb.store import statements
from kb.store.asking import Asking


def search_data(connection: Asking, ids: Sequence[int], floats: Callable[[Sequence[bytes]], bytes]) -> Mapping[int, tuple[Prepared, ...]]:
    """Per row id one ``Prepared`` for each model whose vectors the version has, or one without vectors; ``floats`` joins what the
    engine stores to little-endian float32."""
    wanted = {"ids": msgspec.json.encode([int(row_id) for row_id in ids]).decode()}
    tokens: dict[int, dict[str, int]] = {}
    for row_id, token, count in connection.execute(statements.TOKENS_OF, wanted):
        tokens.setdefault(row_id, {})[token] = count
    models: dict[int, dict[str, list[tuple[str, int, bytes]]]] = {}
    for row_id, model_id, field, dim, values in connection.execute(statements.VECTORS_OF, wanted):
        models.setdefault(row_id, {}).setdefault(model_id, []).append((field, dim, values))
    return {
        row_id: tuple(
            Prepared(
                tokens=tokens.get(row_id, {}),
                vectors=floats([values for _, _, values in rows]),
                fields=tuple(field for field, _, _ in rows),
                dim=rows[0][1] if rows else 0,
                model_id=model_id,
                language_share=share,
            )
            for model_id, rows in models.get(row_id, {"": []}).items()
        )
        for row_id, share in connection.execute(statements.SHARES_OF, wanted)
    }
