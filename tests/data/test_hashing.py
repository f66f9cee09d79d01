"""Hashed words: of whole texts, of each text by itself, and honest about what the words stand on."""

import pytest
import torch
from torch import nn

from reticent import data, models
from reticent.data.features.hashing import present
from reticent.data.sets import imdb
from reticent.data.texts import Texts, as_texts, codes_of
from reticent.errors import DataError, ModelError, SettingError, UnknownName
from reticent.experiments.parts import blueprint_of
from reticent.experiments.presets import features_by
from reticent.experiments.recipe import Recipe

LONG = " ".join(f"w{n}" for n in range(300))


def reviews(texts=("good film", "bad film", LONG), **said):
    found = as_texts(texts)
    y = torch.arange(len(texts)) % 2
    rows = data.Examples(
        torch.zeros(len(texts), 80, dtype=torch.int64), y, texts=Texts(found.codes, found.lengths, **said)
    )
    return data.Dataset("reviews", rows, rows, 2, "made up")


def places(text, name="hashed-words"):
    x = data.extract(reviews((text, "")), name).train.x[0]
    return x[x > 0].tolist()


def test_a_text_is_its_own_words_and_all_of_them():
    found = data.extract(reviews(), "hashed-words-1000003")
    assert found.buckets == 1_000_003
    assert (found.train.x > 0).sum(1).tolist() == [2, 2, 300], "all 300 words, not the first 80"
    other = data.extract(reviews(("good film", "worse and worse", "x")), "hashed-words-1000003")
    assert torch.equal(found.train.x[0], other.train.x[0]), "nobody else's words matter"
    assert found.train.x[0][-2:].tolist() == sorted(int(c) % 1_000_003 + 1 for c in codes_of(["good", "film"]))
    assert found.train.texts is None


def test_presence_counts_neither_twice_nor_in_order():
    assert places("film good") == places("Good, good film: GOOD")
    both, turned = places("good film", "hashed-ngrams"), places("film good", "hashed-ngrams")
    assert len(both) == len(turned) == 3
    assert set(both) & set(turned) == set(places("good film")), "the pair alone knows the order"


def test_neighbours_are_of_one_text():
    x = present(as_texts(["good", "film"]), "hashed-ngrams", 4096)
    assert (x > 0).sum(1).tolist() == [1, 1]


def test_the_width_tells_nothing_of_the_longest_text():
    endless = " ".join(f"w{n}" for n in range(5000))
    x = data.extract(reviews((endless, "a")), "hashed-words").train.x
    assert x.shape == (2, 512)
    assert int((x[0] > 0).sum()) == 512


def test_rows_rise_so_that_no_gradient_is_sorted():
    x = data.extract(reviews(), "hashed-ngrams").train.x
    assert bool(((x[:, 1:] > x[:, :-1]) | (x[:, :-1] == 0)).all())


def test_words_by_their_numbers_hash_as_the_words_do():
    words = imdb.join_words(["film", "good"])
    ids = torch.tensor([1, 5, 4, 1, 2]).numpy().astype("int16")
    arrays = {"words": words, "train_ids": ids, "train_length": torch.tensor([3, 2]).numpy()}
    found = imdb._whole(arrays, "train")
    assert found.lengths.tolist() == [2, 1]
    assert found.codes.tolist() == codes_of(["good", "film", "<rare>"]).tolist()
    assert "no epsilon covers" in found.assumes[0]


def test_what_the_words_stand_on_is_told_with_number_and_guarantee():
    found = data.extract(reviews(assumes=("the list counts as public",)), "hashed-words")
    assert found.train.assumes == ("the list counts as public",)
    assert found.train.take([0]).assumes == found.train.assumes
    assert found.note.endswith("the list counts as public")
    assert data.extract(reviews(), "hashed-words").train.assumes == ()


def test_what_cannot_be_hashed_says_so():
    with pytest.raises(DataError, match="needs texts, and digits has none"):
        data.extract(data.load("digits"), "hashed-words")
    with pytest.raises(DataError, match="from 2 to"):
        data.extract(reviews(), "hashed-words-1")


def written_out(x, buckets):
    rows = torch.zeros(len(x), buckets + 1).scatter(1, x.long(), 1.0)[:, 1:]
    return 8 * nn.functional.normalize(rows)


@pytest.mark.parametrize("name", ["linear", "mlp", "head"])
def test_networks_see_rows_of_one_length(name):
    found = data.extract(reviews(), "hashed-words-64")
    torch.manual_seed(0)
    model = blueprint_of(Recipe(model=name, features="hashed-words-64"), found).build()
    torch.manual_seed(0)
    plain = models.build(name, inputs=(64,), classes=2)
    if name == "head":  # begins at zero
        nn.init.normal_(model[0].weight)
        plain[1].weight.data = model[0].weight.data[1:].T
    torch.testing.assert_close(model(found.train.x), plain(written_out(found.train.x, 64)))


def test_networks_that_cannot_take_places_are_refused():
    found = data.extract(reviews(), "hashed-words-64")
    for wrong, why in (
        (Recipe(model="rnn"), "begins with a linear layer"),
        (Recipe(model="linear", centre=5.0), "centre"),
    ):
        with pytest.raises(ModelError, match=why):
            blueprint_of(wrong, found).build()


def test_images_have_features_unless_a_network_or_views_are_named():
    for name, features in (
        ("mnist", "deskew+scattering-strokes"),
        ("fashion-mnist", "scattering-whitened|patches-1000"),
        ("cifar10", "scattering-photos|patches"),
    ):
        ours = Recipe(data=name).filled()
        assert (ours.features, ours.model) == (features, "linear")
        theirs = Recipe(data=name, model="cnn").filled()
        assert (theirs.features, theirs.model) == (None, "cnn")
        viewed = Recipe(data=name, views="mirror").filled()
        assert (viewed.features, viewed.model) == (None, "cnn")
        bent = Recipe(data=name, activation="relu").filled()
        assert (bent.features, bent.model, bent.activation) == (None, "cnn", "relu")
        assert Recipe(data=name, features="scattering").filled().model == "scattering-linear"
        both = Recipe(data=name, features="scattering", activation="relu").filled()
        assert (both.features, both.model) == ("scattering", "scattering-linear")


def test_public_data_by_name():
    assert features_by("imagenet", None) == "efficientnet-lite0"
    with pytest.raises(SettingError, match="leave out"):
        features_by("imagenet", "scattering")
    with pytest.raises(UnknownName, match="imagenet"):
        features_by("laion", None)


def test_the_preset_of_reviews_is_hashed_and_the_papers_networks_read_words():
    ours = Recipe(data="imdb").filled()
    assert (ours.features, ours.model, ours.optimizer, ours.lr) == ("hashed-words", "linear", None, None)
    for name in ("rnn", "glove-rnn"):
        theirs = Recipe(data="imdb", model=name).filled()
        assert (theirs.features, theirs.optimizer, theirs.lr) == (None, "adam", 0.02)
    assert Recipe(data="imdb", model="mlp", features="hashed-words").filled().features == "hashed-words"
