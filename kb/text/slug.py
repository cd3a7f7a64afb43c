"""Names of records from what people call things, in any script."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from typing import Final

_LONGEST: Final = 96
_HASH: Final = 8


def slug_of(name: str, fallback: str) -> str:
    """Lower-case ASCII words of ``name`` joined by hyphens. What cannot be spelled so (Chinese, for one) is kept apart by eight
    digits of the name's hash; a name without any such word gets ``fallback`` before them. Empty for a name without a letter or
    digit. Equal names give equal slugs, and a slug gives itself."""
    if not any(letter.isalnum() for letter in name):
        return ""
    folded = unicodedata.normalize("NFKD", name)
    words = re.findall(r"[a-z0-9]+", folded.lower())
    if not any(letter.isalnum() and not letter.isascii() for letter in folded):
        return "-".join(words)[:_LONGEST].strip("-")
    mark = hashlib.sha256(name.encode()).hexdigest()[:_HASH]
    return f"{('-'.join(words) or fallback)[: _LONGEST - _HASH - 1].strip('-')}-{mark}"
