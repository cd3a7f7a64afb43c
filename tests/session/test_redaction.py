"""What identifies a person or a machine is masked everywhere; what a diagnosis needs stays."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kb.domain.text import Text
from kb.session.builder import Strings, session, table
from kb.session.meta import Capture, Missing, SessionMeta, Violation
from kb.session.redaction import MASK, redact, redact_text

SECRETS = (
    "hf_abcdefghijklmnopqrstuv",
    "ghp_abcdefghijklmnopqrstuv",
    "sk-abcdefghijklmnopqrstuv",
    "AKIAABCDEFGHIJKLMNOP",
    "eyJhbGciOiJI.eyJzdWIiOiI.c2lnbmF0dXJl",
    "Bearer abcdef0123456789",
    "password=hunter2hunter2",
    "https://bob:hunter2hunter2@example.org/x",
    "-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----",
)


@pytest.mark.parametrize("secret", SECRETS)
def test_secrets_of_known_shapes_are_masked(secret: str) -> None:
    masked = redact_text(f"before {secret} after")
    assert MASK in masked
    assert masked.startswith("before ")
    assert not any(part in masked for part in ("hunter2", "abcdefghijkl", "abcdef0123", "c2lnbmF0", "\nabc\n", "ABCDEFGHIJKL"))


@pytest.mark.parametrize(
    ("text", "gone"),
    [
        ("/home/alice/train.py(3): step", "alice"),
        ("C:\\Users\\alice\\x.py", "alice"),
        ("/root/code/x.py", "/root/"),
        ("rank 0 at 10.1.2.3:29500", "10.1.2.3"),
        ("fe80::1ff:fe23:4567:890a", "4567"),
        ("3c:22:fb:01:02:03", "3c:22"),
        ("mail bob@corp.example.org", "bob@"),
        ("node17.pnb3.facebook.com", "facebook"),
    ],
)
def test_places_and_people_are_masked(text: str, gone: str) -> None:
    assert gone not in redact_text(text)


ORDINARY = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int)",
    "aclnnMatmul_MatMulV3",
    "4096,1024;1024,8",
    "torch/nn/modules/module.py(1501): _call_impl",
    "hcom_allReduce__586_0_1",
    "8.3.RC1",
    "ms:1:2:3",
    "nccl:all_reduce",
)


@pytest.mark.parametrize("text", ORDINARY)
def test_names_of_kernels_and_frames_stay(text: str) -> None:
    assert redact_text(text) == text


def test_names_in_the_environment_are_masked_in_every_other_text() -> None:
    strings = Strings()
    kernels = table("kernels", {
        "start_ns": [1], "duration_ns": [2], "name": ["k"], "op_type": ["Cast"], "core": ["AI_CORE"],
        "file": ["/data/alice42/run/job-7788aa/kernel_details.csv"], "row": [2],
    }, strings)  # fmt: skip
    meta = SessionMeta(
        name="job-7788aa", origin="measured", capture=Capture(format="x", files=("/data/alice42/run/a.csv",)),
        environment={"USER": "alice42", "SLURM_JOB_NAME": "job-7788aa", "HF_TOKEN": "s3cr3t-value", "HCCL_ALGO": "ring", "RANK": "3",
                     "MASTER_ADDR": "trainer-host-9"},
        options={"note": "by alice42", "seed": 7}, missing=(Missing(what="x", why=Text("alice42", "on trainer-host-9")),),
        violations=(Violation(oracle="o", detail="/data/alice42/x", difference_ns=1),),
    )  # fmt: skip
    found = redact(session(meta, [kernels], strings))
    text = repr(found.meta) + repr(found.strings)
    assert not any(name in text for name in ("alice42", "job-7788aa", "s3cr3t-value", "trainer-host-9"))
    assert (found.meta.environment["HCCL_ALGO"], found.meta.environment["RANK"], found.meta.options["seed"]) == ("ring", "3", 7)
    assert redact(found).meta == found.meta
    assert replace(found.meta, name="a").origin == "measured"
