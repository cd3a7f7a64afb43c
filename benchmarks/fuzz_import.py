"""Damaged captures of every format by the thousand: only our errors, each naming its file; no hang; bounded memory.

    python benchmarks/fuzz_import.py [--n 100000] [--seed 1] [--out rows.jsonl]

The last line is JSON: inputs, refused, accepted, faults (exceptions that are not ours, schema breaches, unnamed files), the
slowest input in seconds and the peak memory in 10^6 bytes. ``--out`` keeps one row a fault with what makes it again.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from profiles.mutations import corpus, mutations_of  # the tests' own damage, after the path to it

from kb.errors import KbError
from kb.profile.sources import load
from kb.session.codec import to_bytes

_ARCHIVES = ("one.zip", "one.tar.gz")


def fault_of(root: Path, file: str, name: str) -> tuple[str | None, bool]:
    """What went wrong at one damaged capture (None: nothing), and whether it was refused."""
    try:
        for session in load(root):
            breaches = session.self_check()
            if breaches:
                return breaches[0], False
            to_bytes(session)
    except KbError as error:
        named = name in _ARCHIVES or file in error.what
        return None if named else f"unnamed: {error.what}", True
    except Exception as error:  # noqa: BLE001  # a fuzzer counts what must not happen
        return f"{type(error).__name__}: {error}", False
    return None, False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    refused, slowest, faults = 0, (0.0, ""), []
    with tempfile.TemporaryDirectory() as folder:
        captures = corpus(Path(folder))
        sound = {name: path.read_bytes() for name, (_, path) in captures.items()}
        for number in range(options.n):
            name = rng.choice(list(captures))
            root, path = captures[name]
            mutation, seed = rng.choice(mutations_of(name)), rng.randrange(2**31)
            path.write_bytes(mutation(sound[name], random.Random(seed)))
            begin = time.monotonic()
            fault, no = fault_of(root, path.name, name)
            slowest = max(slowest, (time.monotonic() - begin, f"{name} {mutation.__name__} {seed}"))
            refused += no
            if fault:
                faults.append({"file": name, "mutation": mutation.__name__, "seed": seed, "fault": fault[:200]})
            path.write_bytes(sound[name])
            if number % 1000 == 999:
                print(f"{number + 1} of {options.n}, {len(faults)} faults", file=sys.stderr)
    if options.out:
        options.out.write_text("".join(json.dumps(fault) + "\n" for fault in faults))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    print(json.dumps({
        "inputs": options.n, "seed": options.seed, "refused": refused, "accepted": options.n - refused, "faults": len(faults),
        "slowest_s": round(slowest[0], 3), "slowest": slowest[1], "peak_rss_mb": round(peak, 1),
    }))  # fmt: skip


if __name__ == "__main__":
    main()
