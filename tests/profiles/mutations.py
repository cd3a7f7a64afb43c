"""Ways to damage a file, and small sound captures of every format to damage."""

from __future__ import annotations

import gzip
import io
import json
import random
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from profiles.ascend_writer import OUTPUT, write_rank

from kb.profile.ascend.writing_db import write_rank_database
from kb.profile.sources import load
from kb.session.codec import to_bytes

ODD_CELLS = (
    b"",
    b"N/A",
    b"-1",
    b"nan",
    b"1e308",
    b"9" * 40,
    b"1.69512E+15",
    b"\xff\xfe",
    b'"',
    b'"""',
    b"\n",
    b"0x1f",
    b"\t",
    "１２".encode(),
)


def truncate(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data))]


def flip(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.randint(1, 8)):
        changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


def insert_nul(data: bytes, rng: random.Random) -> bytes:
    place = rng.randrange(len(data))
    return data[:place] + b"\0" * rng.randint(1, 3) + data[place:]


def remove(data: bytes, rng: random.Random) -> bytes:
    start = rng.randrange(len(data))
    return data[:start] + data[start + rng.randint(1, 200) :]


def repeat(data: bytes, rng: random.Random) -> bytes:
    start = rng.randrange(len(data))
    piece = data[start : start + rng.randint(1, 200)]
    return data[:start] + piece * rng.randint(2, 50) + data[start:]


def swap_cell(data: bytes, rng: random.Random) -> bytes:
    for separator in (b",", b":"):
        cells = data.split(separator)
        if len(cells) > 1:
            cells[rng.randrange(len(cells))] = rng.choice(ODD_CELLS)
            data = separator.join(cells)
    return data


def recode(data: bytes, rng: random.Random) -> bytes:
    return data.decode(errors="replace").encode(rng.choice(["utf-16", "utf-16-le", "utf-8-sig", "utf-32"]))


def line_ends(data: bytes, rng: random.Random) -> bytes:
    return data.replace(b"\n", rng.choice([b"\r\n", b"\r", b"\n\n", b""]))


def huge(data: bytes, rng: random.Random) -> bytes:
    place = rng.randrange(len(data))
    return data[:place] + rng.choice([b"7", b"x", b"[", b'"']) * rng.choice([1_000, 1_200_000]) + data[place:]


def empty(data: bytes, rng: random.Random) -> bytes:
    return rng.choice([b"", b"\n", b"\r\n\r\n", b" ", b"{}", b"[]", b"null"])


MUTATIONS: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    truncate, flip, flip, insert_nul, remove, repeat, swap_cell, swap_cell, swap_cell, recode, line_ends, huge, empty,
)  # fmt: skip


def nest(data: bytes, rng: random.Random) -> bytes:
    place = rng.randrange(len(data))
    return data[:place] + rng.choice([b"[", b'{"a":']) * rng.choice([50, 5_000]) + data[place:]


def double_keys(data: bytes, rng: random.Random) -> bytes:
    return data.replace(b'"ts"', rng.choice([b'"dur"', b'"name"', b'"ph"']), rng.randint(1, 5))


BINARY: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    truncate, flip, flip, flip, insert_nul, remove, repeat, empty,
)  # fmt: skip
JSON: tuple[Callable[[bytes, random.Random], bytes], ...] = (*MUTATIONS, nest, double_keys)


def kineto_json(events: int = 30) -> bytes:
    """A small trace: steps, operators, launches, kernels, copies."""
    found: list[dict[str, object]] = []
    for step in range(3):
        base = 1_683_564_901_548_726 + 1000 * step
        found.append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 1, "tid": 1, "ts": base, "dur": 900})
        for index in range(events // 3):
            link = 100 * step + index
            place = {"ts": base + 20 * index, "pid": 1, "tid": 1}
            args = {"External id": link, "Input Dims": [[2, 3], []]}
            found.append({"ph": "X", "cat": "cpu_op", "name": "aten::mm", "dur": 9.25, **place, "args": args})
            found.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "dur": 4, **place, "args": {"correlation": link}})
            kernel = {"stream": 7, "device": 0, "correlation": link, "External id": link}
            found.append(
                {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": base + 20 * index + 10, "dur": 8.5, "args": kernel}
            )
    document = {"schemaVersion": 1, "deviceProperties": [{"name": "X", "numSms": 4}], "traceEvents": found, "traceName": "x"}
    return json.dumps(document, indent=1).encode()


def onnxruntime_json() -> bytes:
    """A small ONNX Runtime profile."""
    node = {"op_name": "MatMul", "provider": "CPUExecutionProvider", "input_type_shape": [{"float": [2, 3]}]}
    found: list[dict[str, object]] = [
        {"cat": "Session", "pid": 1, "tid": 1, "dur": 5, "ts": 1, "ph": "X", "name": "model_loading_uri", "args": {}}
    ]
    for run in range(3):
        found.append({"cat": "Session", "pid": 1, "tid": 1, "dur": 90, "ts": 100 * run + 10, "ph": "X", "name": "model_run", "args": {}})
        for index in range(4):
            place = {"ts": 100 * run + 20 * index + 12, "dur": 15, "ph": "X", "pid": 1, "tid": 1}
            found.append({"cat": "Node", "name": f"n{index}_kernel_time", **place, "args": node})
    return json.dumps(found).encode()


def corpus(folder: Path) -> dict[str, tuple[Path, Path]]:
    """Sound captures by format: the path to load and the file to damage."""
    text = write_rank(folder / "text" / "rank_0_ascend_pt", 0)
    (session,) = load(text)
    database = write_rank_database(session, folder / "db")
    (folder / "kineto.json").write_bytes(kineto_json())
    (folder / "kineto.json.gz").write_bytes(gzip.compress(kineto_json()))
    (folder / "ort.json").write_bytes(onnxruntime_json())
    (folder / "one.prof").write_bytes(to_bytes(session))
    with zipfile.ZipFile(folder / "one.zip", "w") as archive, tarfile.open(folder / "one.tar.gz", "w:gz") as tape:
        for path in sorted(text.rglob("*step*.*")):
            archive.write(path, path.relative_to(text.parent))
            information = tarfile.TarInfo(path.relative_to(text.parent).as_posix())
            information.size = path.stat().st_size
            tape.addfile(information, io.BytesIO(path.read_bytes()))
    main = next(database.rglob("ascend_pytorch_profiler*.db"))
    whole = {name: folder / name for name in ("kineto.json", "kineto.json.gz", "ort.json", "one.prof", "one.zip", "one.tar.gz")}
    return {
        **{path.name: alone(path, text, folder / f"{path.name}.alone") for path in sorted(text.rglob("*.*")) if path.is_file()},
        "main.db": (database, main),
        "analysis.db": (database, main.with_name("analysis.db")),
        "origin": (database, database / "session_origin.json"),
        **{name: (path, path) for name, path in whole.items()},
    }


def alone(path: Path, rank: Path, folder: Path) -> tuple[Path, Path]:
    """A rank folder with one file of ``rank`` and the step totals: as quick to load as a capture can be."""
    own = folder / rank.name
    for source in {path, rank / OUTPUT / "step_trace_time.csv"}:
        target = own / source.relative_to(rank)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(source.read_bytes())
    return own, own / path.relative_to(rank)


def mutations_of(name: str) -> tuple[Callable[[bytes, random.Random], bytes], ...]:
    """The damage that makes sense for a file of this kind."""
    if name.endswith((".db", ".gz", ".zip", ".prof")):
        return BINARY
    return JSON if name.endswith(".json") or name == "origin" else MUTATIONS
