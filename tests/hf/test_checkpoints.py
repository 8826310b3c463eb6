"""The stock Trainer's checkpoints after a kill: the newest whole one is found, damaged ones are named."""

import os

import pytest
import torch
import transformers
from safetensors.torch import save_file

from fitune.hf import Trainer
from fitune.hf.checkpoints import newest_whole, what_is_wrong


def write_checkpoint(folder, step):
    path = folder / f"checkpoint-{step}"
    path.mkdir()
    save_file({"a": torch.ones(100)}, path / "model.safetensors")
    torch.save({"a": torch.ones(100)}, path / "optimizer.pt")
    (path / "trainer_state.json").write_text('{"global_step": 1}')
    return path


def test_the_newest_whole_one_is_found_and_damaged_ones_are_named(tmp_path):
    said = []
    assert newest_whole(str(tmp_path), lambda *words: said.append(words)) is True
    for step in (3, 6, 9, 12):
        write_checkpoint(tmp_path, step)
    for step, name in ((6, "optimizer.pt"), (9, "trainer_state.json"), (12, "model.safetensors")):
        path = tmp_path / f"checkpoint-{step}" / name
        os.truncate(path, path.stat().st_size // 2)
        assert name in what_is_wrong(path.parent)
    assert newest_whole(str(tmp_path), lambda *words: said.append(words)) == str(tmp_path / "checkpoint-3")
    assert [code for code, _text in said] == ["FT602"] * 3
    assert sorted(p.name for p in tmp_path.glob("damaged-*")) == [f"damaged-checkpoint-{n}" for n in (12, 6, 9)]
    (tmp_path / "checkpoint-3" / "trainer_state.json").unlink()
    assert newest_whole(str(tmp_path), lambda *words: None) is False


def small_model():
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=40,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=16,
    )
    return transformers.BertForTokenClassification(config)


@pytest.mark.parametrize("damaged", [False, True])
def test_a_script_that_was_killed_in_a_save_goes_on_to_the_same_bits(tmp_path, damaged):
    rows = [{"input_ids": [5 + i, 6, 7, i % 30], "labels": [0, 1, -100, i % 2]} for i in range(32)]

    def trainer(folder):
        arguments = transformers.TrainingArguments(
            output_dir=str(folder),
            per_device_train_batch_size=4,
            num_train_epochs=1,
            save_steps=2,
            save_strategy="steps",
            report_to="none",
            use_cpu=True,
            disable_tqdm=True,
        )
        return Trainer(model=small_model(), args=arguments, train_dataset=rows)

    whole = trainer(tmp_path / "run")
    whole.train()
    for folder in (tmp_path / "run").glob("checkpoint-[68]"):
        (folder / "trainer_state.json").unlink() if damaged or folder.name == "checkpoint-8" else None
    again = trainer(tmp_path / "run")
    again.train(resume_from_checkpoint=True)
    assert again.state.global_step == 8
    for a, b in zip(whole.model.parameters(), again.model.parameters(), strict=True):
        assert torch.equal(a, b)
