"""The group roles of one team store. Roles belong to the whole server, so each carries its database's name."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from kb.errors import UsageError

RoleKind = Literal["guest", "member", "maintainer"]
LONGEST: Final = 40
"""Characters of a database name: role names have 63 at most."""


class Roles(msgspec.Struct, frozen=True):
    """``owner`` holds every table and cannot log in. A guest reads what is public; a member also what is the team's and its own, and
    publishes; a maintainer also keeps the library, withdraws what others published and reads the audit."""

    owner: str
    guest: str
    member: str
    maintainer: str

    def named(self, kind: RoleKind) -> str:
        """The group role of this kind."""
        return {"guest": self.guest, "member": self.member, "maintainer": self.maintainer}[kind]


def roles_of(database: str) -> Roles:
    """The roles of the store in ``database``. Raises UsageError for a name too long to carry."""
    if len(database) > LONGEST:
        raise UsageError(f"the database name has {len(database)} characters", allowed=f"up to {LONGEST}", do="choose a shorter name")
    return Roles(*(f"kb_{kind}_{database}" for kind in ("owner", "guest", "member", "maintainer")))
