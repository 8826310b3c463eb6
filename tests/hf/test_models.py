"""Tokenizers and encoders: proofs at load time, and refusals."""

import json
import pickle

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from fitune.hf.models import check_tokenizer, has_capitals, load_model, load_tokenizer, make_encoder  # noqa: E402
from fitune.values import Refusal  # noqa: E402

LABELS = ["O", "B-PER", "I-PER"]
WORDS = [*"的浙江大学王老师花了元全角中文，！0123456789:.￥", "iphone", "pro", "used", "an", "##e", "abc", "emoji", "'"]
SPECIAL = ["[PAD]", "[unused1]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


@pytest.fixture
def folder(tmp_path):
    """A tiny BERT that says, as bert-base-chinese does, that it keeps case, and has no capitals."""
    words = SPECIAL + WORDS
    (tmp_path / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": False}))
    config = transformers.BertConfig(
        vocab_size=len(words),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
    )
    torch.manual_seed(0)
    transformers.BertModel(config).save_pretrained(tmp_path)
    return tmp_path


def test_lower_cases_when_the_vocabulary_has_no_capitals(folder):
    tokenizer = load_tokenizer(folder)
    assert not has_capitals(tokenizer)
    encoded = tokenizer("iPhone中Pro", return_offsets_mapping=True)
    assert tokenizer.convert_ids_to_tokens(encoded["input_ids"])[1:-1] == ["iphone", "中", "pro"]
    assert encoded["offset_mapping"][1:-1] == [(0, 6), (6, 7), (7, 10)]
    assert tokenizer.model_max_length == 64


def test_lower_casing_survives_saving(folder, tmp_path):
    load_tokenizer(folder).save_pretrained(tmp_path / "saved")
    again = transformers.AutoTokenizer.from_pretrained(tmp_path / "saved")
    assert again.tokenize("iPhone") == ["iphone"]


def test_the_user_overrules_case(folder):
    assert load_tokenizer(folder, lowercase=False).tokenize("iPhone") == ["[UNK]"]


def test_lower_casing_of_any_fast_tokenizer_survives_saving(folder, tmp_path):
    from tokenizers import Tokenizer, models, pre_tokenizers

    vocabulary = {word: index for index, word in enumerate([*SPECIAL, "abc", "Pro", "中"])}
    backend = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=100))
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    other = tmp_path / "other"
    transformers.PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="[UNK]").save_pretrained(other)
    (other / "config.json").write_text((folder / "config.json").read_text())
    assert load_tokenizer(other).tokenize("ABC") == ["[UNK]"], "the vocabulary has capitals"
    load_tokenizer(other, lowercase=True).save_pretrained(tmp_path / "saved")
    assert transformers.AutoTokenizer.from_pretrained(tmp_path / "saved").tokenize("ABC") == ["abc"]


def test_case_is_kept_when_the_vocabulary_has_capitals(folder):
    with (folder / "vocab.txt").open("a", encoding="utf-8") as file:
        file.write("Pro\n")
    set_vocabulary(folder, len(SPECIAL) + len(WORDS) + 1)
    assert load_tokenizer(folder).tokenize("Pro") == ["Pro"]


def set_vocabulary(folder, size):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "vocab_size": size}))


def test_refuses_a_vocabulary_larger_than_the_embeddings(folder):
    with (folder / "vocab.txt").open("a", encoding="utf-8") as file:
        file.write("额\n外\n")
    with pytest.raises(Refusal, match="embeddings") as refused:
        load_tokenizer(folder)
    assert refused.value.code == "FT705"


def test_refuses_a_tokenizer_that_reads_chinese_as_words(folder):
    from tokenizers import Tokenizer, models, pre_tokenizers

    vocabulary = {word: index for index, word in enumerate([*SPECIAL, *"浙的", "##江"])}
    backend = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=100))
    backend.pre_tokenizer = pre_tokenizers.Split("大", "isolated")
    wrong = transformers.PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="[UNK]")
    with pytest.raises(Refusal, match="words"):
        check_tokenizer(wrong, None)


def test_refuses_offsets_that_do_not_hold(folder):
    tokenizer = load_tokenizer(folder)

    class Shifted:
        unk_token = "[UNK]"

        class backend_tokenizer:
            @staticmethod
            def encode(text, add_special_tokens):
                encoded = tokenizer.backend_tokenizer.encode(text, add_special_tokens=add_special_tokens)

                class Off:
                    tokens = encoded.tokens
                    offsets = [(start + 1, min(end + 1, len(text))) for start, end in encoded.offsets]  # noqa: RUF012

                return Off

    with pytest.raises(Refusal, match="offsets"):
        check_tokenizer(Shifted(), None)


def test_encoder_for_windows(folder):
    tokenizer = load_tokenizer(folder)
    encoder = make_encoder(tokenizer)
    cls, sep = tokenizer.cls_token_id, tokenizer.sep_token_id
    assert (encoder.prefix, encoder.middle, encoder.suffix) == ((cls,), (sep,), (sep,))
    assert encoder.uses_segments
    assert encoder.max_length == 64
    encoded = encoder.encode(["大学", ""])
    assert encoded.bounds.tolist() == [0, 2, 2]
    assert encoder.pieces(encoded.ids) == ["大", "学"]


@pytest.mark.parametrize("task", ["ner", "classification"])
def test_model_carries_the_label_names_and_only_the_head_is_new(folder, task, tmp_path):
    loaded = load_model(folder, LABELS, task=task, tokenizer=load_tokenizer(folder))
    assert {name.split(".")[0] for name in loaded.new_weights} == {"classifier"}
    assert loaded.model.config.id2label == dict(enumerate(LABELS))
    loaded.model.save_pretrained(tmp_path / "saved")
    saved = json.loads((tmp_path / "saved" / "config.json").read_text())
    assert saved["label2id"] == {"O": 0, "B-PER": 1, "I-PER": 2}
    again = load_model(tmp_path / "saved", LABELS, task=task)
    assert again.new_weights == ()
    other = load_model(tmp_path / "saved", [*LABELS, "B-LOC"], task=task)
    assert other.new_weights == ("classifier.bias", "classifier.weight")


def test_encoder_weights_that_are_missing_stop_it(folder):
    set_layers(folder, 3)
    with pytest.raises(Refusal, match=r"encoder\.layer\.2") as refused:
        load_model(folder, LABELS, task="ner")
    assert refused.value.code == "FT707"


def set_layers(folder, layers):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "num_hidden_layers": layers}))


class Evil:
    def __reduce__(self):
        return (open, ("evil-was-here", "w"))


def test_a_pickle_is_read_as_weights_only(folder, monkeypatch, tmp_path):
    state = transformers.BertModel.from_pretrained(folder).state_dict()
    (folder / "model.safetensors").unlink()
    torch.save(state, folder / "pytorch_model.bin")
    assert load_model(folder, LABELS, task="ner").model is not None
    torch.save({**state, "bad": Evil()}, folder / "pytorch_model.bin")
    monkeypatch.chdir(tmp_path)
    with pytest.raises((pickle.UnpicklingError, OSError, ValueError)):
        load_model(folder, LABELS, task="ner")
    assert not (tmp_path / "evil-was-here").exists()
