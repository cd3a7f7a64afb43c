"""``kb simulate model``"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from kb.errors import ExitCode
from kb.profile.simulated.options import Options as SimulatorOptions
from kb.session.codec import to_bytes
from kb.workflow.location import shipped_catalogue
from kb.workflow.simulate import DEFAULT_SOC, simulated_session
from kb_cli.command import Argument, Command, Common, Flag
from kb_cli.console import Console
from kb_cli.files import write_new


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """A model, a chip, settings, and where the session goes."""

    model: Annotated[str, Argument("Name of a built-in model: sd3, bert-base, bert-large.", "MODEL")]
    output: Annotated[Path | None, Flag("--output", "The new .prof file; default MODEL-SOC.prof here.", "FILE.prof")] = None
    soc: Annotated[str, Flag("--soc", "Chip.", "SOC")] = DEFAULT_SOC
    seed: Annotated[int, Flag("--seed", "Seed of the noise.", "N")] = 1
    batch: Annotated[int, Flag("--batch", "Batch size.", "N")] = 1
    fused_attention: Annotated[bool, Flag("--fused-attention", "One kernel for product, softmax, product.")] = False
    stream_depth: Annotated[int, Flag("--stream-depth", "Launches that may be unfinished before the host waits.", "N")] = 2
    force: Annotated[bool, Flag("--force", "Overwrite the output file.")] = False


def run(options: Options, console: Console) -> int:
    """Simulate and write the session."""
    settings = SimulatorOptions(batch=options.batch, fused_attention=options.fused_attention, stream_depth=options.stream_depth)
    name = f"{options.model}-{options.soc}"
    session = simulated_session(shipped_catalogue(), options.model, soc=options.soc, seed=options.seed, options=settings, name=name)
    path = options.output or Path(f"{name}.prof")
    write_new(path, to_bytes(session), force=options.force)
    if console.as_json:
        console.json({"file": str(path), "origin": session.meta.origin, "simulator": session.meta.simulator})
    else:
        console.say(f"已写入 {path}（仿真）", f"wrote {path} (simulated)")
    return ExitCode.DONE


COMMAND = Command(
    "Make a session on the simulated backend.",
    Options,
    run,
    ("kb simulate model sd3 --output sd3.prof", "kb simulate model bert-large --soc 910b4"),
)
