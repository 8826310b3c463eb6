"""The linear-chain CRF against the sum over all paths."""

import itertools

import pytest

torch = pytest.importorskip("torch")

from fitune.tasks.crf import FORBIDDEN, LinearChainCrf, bio_constraints  # noqa: E402

LABELS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
PLAIN = ["a", "b", "c"]


def make(labels=LABELS, seed=0, dtype=torch.float64):
    torch.manual_seed(seed)
    crf = LinearChainCrf(labels)
    with torch.no_grad():
        for parameter in crf.parameters():
            parameter.normal_()
    return crf.to(dtype)


def score_of(crf, emissions, path):
    """The definition, term by term."""
    transitions, start, end = crf.constrained(torch.float64)
    total = start[path[0]] + end[path[-1]] + sum(emissions[i, label] for i, label in enumerate(path))
    return total + sum(transitions[a, b] for a, b in itertools.pairwise(path))


def all_paths(crf, emissions):
    paths = list(itertools.product(range(emissions.shape[1]), repeat=emissions.shape[0]))
    return paths, torch.stack([score_of(crf, emissions, path) for path in paths])


def is_valid(path, labels=LABELS):
    names = [labels[index] for index in path]
    previous = "O"
    for name in names:
        if name.startswith("I-") and previous not in (f"B-{name[2:]}", name):
            return False
        previous = name
    return True


@pytest.mark.parametrize("length", [1, 2, 4])
@pytest.mark.parametrize("labels", [LABELS, PLAIN])
def test_likelihood_and_viterbi_equal_brute_force(labels, length):
    crf = make(labels)
    emissions = torch.randn(length, len(labels), dtype=torch.float64)
    paths, scores = all_paths(crf, emissions)
    everywhere = torch.ones(1, length, dtype=torch.bool)
    for index in (0, len(paths) - 1):
        if is_valid(paths[index], labels):
            loss = crf.negative_log_likelihood(emissions[None], torch.tensor([paths[index]]))
            assert loss.item() == pytest.approx((torch.logsumexp(scores, 0) - scores[index]).item(), abs=1e-9)
    assert tuple(crf.decode(emissions[None], everywhere)[0].tolist()) == paths[int(scores.argmax())]


def test_marginals_equal_brute_force():
    crf = make()
    emissions = torch.randn(3, 5, dtype=torch.float64)
    paths, scores = all_paths(crf, emissions)
    weights = scores.softmax(0)
    expected = torch.zeros(3, 5, dtype=torch.float64)
    for path, weight in zip(paths, weights, strict=True):
        for position, label in enumerate(path):
            expected[position, label] += weight
    found = crf.marginals(emissions[None], torch.ones(1, 3, dtype=torch.bool))[0]
    assert torch.allclose(found, expected, atol=1e-9)
    assert torch.allclose(found.sum(-1), torch.ones(3, dtype=torch.float64))


def test_gradients_in_float64():
    crf = make(PLAIN)
    logits = torch.randn(2, 4, 3, dtype=torch.float64, requires_grad=True)
    labels = torch.tensor([[0, 2, 1, 1], [-100, 1, -100, 0]])

    def loss(logits, transitions, start, end):
        return torch.func.functional_call(
            Wrapped(crf),
            {"crf.transitions": transitions, "crf.start": start, "crf.end": end},
            (logits, labels),
        )

    parameters = [p.detach().clone().requires_grad_() for p in (crf.transitions, crf.start, crf.end)]
    assert torch.autograd.gradcheck(loss, (logits, *parameters))


class Wrapped(torch.nn.Module):
    def __init__(self, crf):
        super().__init__()
        self.crf = crf

    def forward(self, logits, labels):
        return self.crf.negative_log_likelihood(logits, labels)


def test_unlabelled_positions_never_enter():
    """Any mask: holes, leading and trailing. Noise in the holes changes nothing, and the gaps close."""
    crf = make()
    dense = torch.randn(1, 4, 5, dtype=torch.float64)
    gold = torch.tensor([[1, 2, 0, 3]])
    places = torch.tensor([1, 2, 5, 7])
    for filler in (0.0, 1e6, float("nan")):
        logits = torch.full((1, 9, 5), filler, dtype=torch.float64)
        labels = torch.full((1, 9), -100)
        logits[:, places], labels[:, places] = dense, gold
        mask = labels != -100
        expected = crf.negative_log_likelihood(dense, gold).item()
        assert crf.negative_log_likelihood(logits, labels).item() == pytest.approx(expected)
        path = crf.decode(logits, mask)
        assert path[0, places].tolist() == crf.decode(dense, gold >= 0)[0].tolist()
        assert (path[~mask] == -100).all()
        marginals = crf.marginals(logits, mask)
        assert torch.allclose(marginals[:, places], crf.marginals(dense, gold >= 0))
        assert (marginals[~mask] == 0).all()


def test_batched_equals_one_at_a_time_and_sums_are_exact_under_cutting():
    crf = make()
    torch.manual_seed(1)
    logits = torch.randn(6, 11, 5, dtype=torch.float64)
    labels = torch.zeros(6, 11, dtype=torch.long)
    labels[torch.rand(6, 11) < 0.4] = -100
    labels[3] = -100  # nothing labelled
    labels[4, 1:] = -100
    labels[4, 0] = 1  # a single token
    mask = labels != -100
    together = crf.negative_log_likelihood(logits, labels)
    alone = torch.cat([crf.negative_log_likelihood(logits[i : i + 1], labels[i : i + 1]) for i in range(6)])
    assert torch.allclose(together, alone, atol=1e-10)
    assert together[3] == 0
    paths = crf.decode(logits, mask)
    assert all(torch.equal(paths[i : i + 1], crf.decode(logits[i : i + 1], mask[i : i + 1])) for i in range(6))


def test_nothing_labelled_at_all():
    crf = make()
    logits = torch.randn(2, 3, 5, dtype=torch.float64, requires_grad=True)
    labels = torch.full((2, 3), -100)
    loss = crf.negative_log_likelihood(logits, labels)
    loss.sum().backward()
    assert loss.tolist() == [0, 0]
    assert (crf.decode(logits, labels != -100) == -100).all()
    assert (crf.marginals(logits, labels != -100) == 0).all()
    assert crf.decode(logits[:0], (labels != -100)[:0]).shape == (0, 3)


def test_decode_obeys_bio_however_the_scores_pull():
    crf = make(dtype=torch.float32)
    torch.manual_seed(2)
    logits = torch.randn(40, 12, 5) * 8
    logits[:, :, 2] += 20  # everything wants to be I-PER
    for path in crf.decode(logits, torch.ones(40, 12, dtype=torch.bool)).tolist():
        assert is_valid(path)


def test_constraints_follow_the_names():
    allowed, allowed_start, begin = bio_constraints(LABELS)
    assert allowed[1, 2]
    assert allowed[2, 2]
    assert not allowed[0, 2]
    assert not allowed[3, 2]
    assert allowed_start.tolist() == [True, True, False, True, False]
    assert begin.tolist() == [0, 1, 1, 3, 3]
    crf = make()
    assert (crf.constrained(torch.float32)[0][~allowed] == FORBIDDEN).all()


def test_forbidden_transitions_get_no_gradient_and_a_cut_entity_no_penalty():
    """A window that begins inside an entity: its I- is read as B-, and the loss stays of ordinary size."""
    crf = make()
    logits = torch.randn(1, 3, 5, dtype=torch.float64)
    cut = crf.negative_log_likelihood(logits, torch.tensor([[2, 2, 4]]))
    opened = crf.negative_log_likelihood(logits, torch.tensor([[1, 2, 3]]))
    assert cut.item() == opened.item()
    cut.sum().backward()
    assert (crf.transitions.grad[~crf.allowed] == 0).all()


def test_half_precision_scores_are_summed_in_float32():
    crf = make(dtype=torch.float32)
    logits = torch.randn(1, 300, 5).bfloat16()
    labels = torch.zeros(1, 300, dtype=torch.long)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = crf.negative_log_likelihood(logits, labels)
    assert loss.dtype == torch.float32
    assert loss.item() == pytest.approx(crf.negative_log_likelihood(logits.float(), labels).item())


def test_only_transitions_are_saved():
    assert set(LinearChainCrf(LABELS).state_dict()) == {"transitions", "start", "end"}
