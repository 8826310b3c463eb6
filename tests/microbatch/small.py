"""A small encoder with every kind of state that a failed attempt could spoil: dropout and BatchNorm."""

import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self, *, dropout=0.0, batch_norm=False, vocabulary=50, hidden=16, classes=5):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, hidden)
        self.layer = nn.TransformerEncoderLayer(hidden, 2, 32, dropout=dropout, batch_first=True)
        self.norm = nn.BatchNorm1d(hidden) if batch_norm else None
        self.head = nn.Linear(hidden, classes)

    def forward(self, ids, mask):
        h = self.layer(self.embed(ids), src_key_padding_mask=~mask)
        if self.norm is not None:
            h = self.norm(h.transpose(1, 2)).transpose(1, 2)
        return self.head(h)


def loss_sum_of(model):
    def loss_sum(inputs):
        ids, mask, targets = inputs
        return nn.functional.cross_entropy(model(ids, mask)[mask], targets[mask], reduction="sum")

    return loss_sum


class Items:
    """Windows of random ids and targets; padded to the longest window of the micro-batch."""

    def __init__(self, lengths, seed=0, classes=5, vocabulary=50):
        generator = torch.Generator().manual_seed(seed)
        self.lengths = list(lengths)
        self.ids = [torch.randint(0, vocabulary, (n,), generator=generator) for n in lengths]
        self.targets = [torch.randint(0, classes, (n,), generator=generator) for n in lengths]

    @property
    def total_weight(self):
        return float(sum(self.lengths))

    def collate(self, indices):
        pad = nn.utils.rnn.pad_sequence
        ids = pad([self.ids[i] for i in indices], batch_first=True)
        targets = pad([self.targets[i] for i in indices], batch_first=True)
        lengths = torch.tensor([self.lengths[i] for i in indices])
        return ids, torch.arange(ids.shape[1])[None] < lengths[:, None], targets


class Little(nn.Module):
    """As Tagger with dropout and BatchNorm, in few operators: for tests that fail at each of them."""

    def __init__(self, vocabulary=50, hidden=8, classes=5):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, hidden)
        self.dropout = nn.Dropout(0.2)
        self.mix = nn.Linear(hidden, hidden)
        self.norm = nn.BatchNorm1d(hidden)
        self.head = nn.Linear(hidden, classes)

    def forward(self, ids, mask):
        h = self.dropout(self.embed(ids))
        h = torch.relu(self.mix(h)) + (h * mask[..., None]).mean(1, keepdim=True)
        return self.head(self.norm(h.transpose(1, 2)).transpose(1, 2))
