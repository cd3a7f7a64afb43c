"""``kb store init``"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from kb.errors import ExitCode
from kb.report.payload import plain
from kb.workflow.team import TeamReady, initialise_team, logins_of
from kb.workflow.workspace import workspace
from kb_cli.command import Command, Common, Flag
from kb_cli.console import Console


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """Which database, and who may use it."""

    admin_url: Annotated[str, Flag("--admin-url", "An administrator's address of the database.", "URL")]
    member: Annotated[tuple[str, ...], Flag("--member", "A login that reads the team's and publishes; may be repeated.", "NAME")] = ()
    guest: Annotated[tuple[str, ...], Flag("--guest", "A login that reads public records; may be repeated.", "NAME")] = ()
    maintainer: Annotated[tuple[str, ...], Flag("--maintainer", "A member who also keeps the library and reads the audit.", "NAME")] = ()
    no_library: Annotated[bool, Flag("--no-library", "Leave the shipped library out.")] = False


def run(options: Options, console: Console) -> int:
    """Make or upgrade the team store, and tell the new passwords once."""
    logins = logins_of(options.guest, options.member, options.maintainer)
    ready = initialise_team(options.admin_url, logins, workspace(), console.progress(), library=not options.no_library)
    if console.as_json:
        console.json(plain(ready))
        return ExitCode.DONE
    _tell(ready, console)
    return ExitCode.DONE


def _tell(ready: TeamReady, console: Console) -> None:
    made = ready.initialised
    steps = ", ".join(made.applied)
    console.say(
        f"团队库 {made.database}：{f'已应用 {steps}' if steps else '结构已是最新'}；发布内置记录 {ready.library} 条",
        f"team store {made.database}: {f'applied {steps}' if steps else 'the schema is current'}; "
        f"{ready.library} library records published",
    )
    if not made.closed:
        console.remark(
            "数据库中还有其他程序的表，未收回 PUBLIC 的连接权限",
            "the database also holds tables of other programs, so PUBLIC may still connect to it",
        )
    for name, kind in made.granted:
        password = made.passwords.get(name)
        told = (f"，密码 {password}（只显示这一次）", f", password {password} (shown this once)") if password else ("", "")
        console.say(f"{name}：{kind}{told[0]}", f"{name}: {kind}{told[1]}")
    for index in ready.indexes:
        if index.recall is not None:
            console.say(
                f"{index.model_id}：近似索引在过滤下的 recall@10 最低 {index.recall:.3f}，"
                f"{'保留' if index.kept else '已删除，改为精确扫描'}",
                f"{index.model_id}: approximate index, worst recall@10 under filters {index.recall:.3f}, "
                f"{'kept' if index.kept else 'dropped: exact scans'}",
            )


COMMAND = Command(
    "Make or upgrade a team store on PostgreSQL: schema, roles, logins, the shipped library.",
    Options,
    run,
    ("kb store init --admin-url postgresql://postgres@db.example/casebook --member ann --member bob --guest reader",),
)
