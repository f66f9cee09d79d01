"""Every published form of every dataset, on small files of that form; broken files get errors that name the remedy."""

import gzip
import io
import json
import pickle
import struct
import tarfile
import zipfile
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from reticent import data
from reticent.data.features.vectors import GLOVE_TRAINED_ON
from reticent.data.loading import packed, pickles, png, stored
from reticent.data.loading.arrays import fingerprint
from reticent.data.sets import adult, checkins, cifar, imdb, mnist, reviews, vectors
from reticent.errors import DataError


@pytest.fixture
def anything_goes(monkeypatch):
    """Small files are not the published data: switch the fingerprints off."""
    monkeypatch.setattr(stored, "published_fingerprints", dict)
    monkeypatch.setattr(stored, "_check_files", lambda *_: None)


def archive(path, members):
    with tarfile.open(path, "w:gz") as file:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            file.addfile(info, io.BytesIO(content))


def idx(array):
    return bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">i4").tobytes() + array.tobytes()


def random_bytes(*shape, seed=0):
    return np.random.RandomState(seed).randint(0, 256, shape).astype(np.uint8)


# --- MNIST and Fashion-MNIST ---------------------------------------------------------------------------------------


def small_mnist(seed=0):
    labels = random_bytes(5, seed=seed) % 10
    return {
        "train_x": random_bytes(5, 28, 28, seed=seed),
        "train_y": labels,
        "test_x": random_bytes(5, 28, 28, seed=seed + 1),
        "test_y": labels,
    }


@pytest.mark.parametrize("form", ["gzip", "plain", "csv"])
def test_mnist_in_each_form(form, tmp_path, anything_goes):
    folder = tmp_path / "mnist"
    folder.mkdir()
    parts = small_mnist()
    if form == "csv":
        for part in ("train", "test"):
            rows = np.concatenate([parts[f"{part}_y"][:, None], parts[f"{part}_x"].reshape(5, -1)], axis=1)
            np.savetxt(folder / f"mnist_{part}.csv", rows, "%d", ",", header="label,pixels", comments="")
    for part, file in mnist.FILES.items():
        if form == "gzip":
            (folder / f"{file}.gz").write_bytes(gzip.compress(idx(parts[part])))
        if form == "plain":
            (folder / file).write_bytes(idx(parts[part]))
    found = data.load("mnist", folder=tmp_path)
    assert found.inputs == (1, 28, 28)
    assert np.array_equal(np.rint(found.train.x[:, 0].numpy() * 255), parts["train_x"])
    assert np.array_equal(found.test.y, parts["test_y"])


def test_data_that_is_not_the_published_one_is_refused(tmp_path):
    folder = tmp_path / "mnist"
    folder.mkdir()
    for part, file in mnist.FILES.items():
        (folder / f"{file}.gz").write_bytes(gzip.compress(idx(small_mnist(seed=9)[part])))
    with pytest.raises(DataError, match=r"not the published data.*reticent data get mnist"):
        data.load("mnist", folder=tmp_path)


def test_a_damaged_file_is_named_with_the_remedy(tmp_path):
    folder = tmp_path / "mnist"
    folder.mkdir()
    for file in mnist.FILES.values():
        (folder / f"{file}.gz").write_bytes(b"not gzip")
    with pytest.raises(DataError, match="remove them and run `reticent data get mnist`"):
        data.load("mnist", folder=tmp_path)


@pytest.mark.parametrize("raw", [b"", b"\0\0\x09\1\0\0\0\1x", b"\0\0\x08\1\0\0\0\5ab"])
def test_idx_files_that_are_not(raw):
    with pytest.raises(DataError):
        mnist.decode_idx(raw)


# --- CIFAR ---------------------------------------------------------------------------------------------------------


def cifar_batch(images, labels, coarse):
    front = [np.zeros_like(labels)[:, None]] if coarse else []
    return np.concatenate([*front, labels[:, None], images.reshape(len(images), -1)], axis=1).tobytes()


def cifar_members(name, kind, seed=0):
    """The archive's members and the arrays they hold."""
    fine = name == "cifar100"
    parts = {"train": [""] if fine else cifar.TRAIN_10, "test": [""] if fine else cifar.TEST_10}
    folder = {("cifar10", "binary"): "cifar-10-batches-bin", ("cifar10", "python"): "cifar-10-batches-py"}
    members, expected = {}, {}
    for part, batches in parts.items():
        images, labels = [], []
        for batch in batches:
            seed += 1
            x, y = random_bytes(2, 3, 32, 32, seed=seed), random_bytes(2, seed=seed) % 10
            images.append(x)
            labels.append(y)
            path = f"cifar-100-{kind}/{part}" if fine else f"{folder[name, kind]}/{batch}"
            if kind == "binary":
                members[f"{path}.bin"] = cifar_batch(x, y, fine)
            else:
                label = b"fine_labels" if fine else b"labels"
                members[path] = pickle.dumps({b"data": x.reshape(2, -1), label: y.tolist()}, protocol=2)
        expected[f"{part}_x"], expected[f"{part}_y"] = np.concatenate(images), np.concatenate(labels)
    return members, expected


@pytest.mark.parametrize("name", ["cifar10", "cifar100"])
@pytest.mark.parametrize("kind", ["binary", "python"])
@pytest.mark.parametrize("unpacked", [False, True])
def test_official_cifar_in_each_form(name, kind, unpacked, tmp_path, anything_goes):
    members, expected = cifar_members(name, kind)
    folder = tmp_path / name
    folder.mkdir()
    archive(folder / f"{name[:5]}-{name[5:]}-{kind}.tar.gz", members)
    if unpacked:
        packed_file = next(folder.glob("*.tar.gz"))
        with tarfile.open(packed_file) as file:
            file.extractall(folder, filter="data")
        packed_file.unlink()
    found = data.load(name, folder=tmp_path)
    assert found.classes == int(name[5:])
    for part, examples in (("train", found.train), ("test", found.test)):
        assert np.array_equal(np.rint(examples.x.numpy() * 255), expected[f"{part}_x"])
        assert np.array_equal(examples.y, expected[f"{part}_y"])


def test_cifar100_that_is_not_the_published_file_is_refused(tmp_path):
    members, _ = cifar_members("cifar100", "binary", seed=50)
    (tmp_path / "cifar100").mkdir()
    archive(tmp_path / "cifar100" / "cifar-100-binary.tar.gz", members)
    with pytest.raises(DataError, match=r"not the published file.*reticent data get cifar100"):
        data.load("cifar100", folder=tmp_path)


def test_an_archive_that_lacks_a_batch_says_which(tmp_path, anything_goes):
    members, _ = cifar_members("cifar10", "binary")
    del members["cifar-10-batches-bin/data_batch_3.bin"]
    (tmp_path / "cifar10").mkdir()
    archive(tmp_path / "cifar10" / "cifar-10-binary.tar.gz", members)
    with pytest.raises(DataError, match="data_batch_3"):
        data.load("cifar10", folder=tmp_path)


def test_a_batch_cut_short_is_refused():
    with pytest.raises(DataError, match="no multiple"):
        cifar.decode_binary(bytes(3000), 1)


def test_pickles_that_would_run_code_are_not_opened():
    class Evil:
        def __reduce__(self):
            return (print, ("boo",))

    with pytest.raises(DataError, match="not opened"):
        pickles.unpickle_arrays(pickle.dumps({b"data": Evil()}))


def pack(images):
    """The packing of `packed.unpack_images`, written independently: one image, one pixel at a time."""
    residual = np.zeros((3, *images.shape[2:], len(images)), np.uint8)
    for n, (red, green, blue) in enumerate(images.astype(int)):
        for p, plane in enumerate((green, red - green, blue - green)):
            for r, c in np.ndindex(plane.shape):
                west = plane[r, c - 1] if c else 0
                north = plane[r - 1, c] if r else 0
                corner = plane[r - 1, c - 1] if r and c else 0
                middle = sorted((west, north, west + north - corner))[1]
                guess = middle if r and c else (north if r else west)
                residual[p, r, c, n] = (plane[r, c] - guess) % 256
    return residual


@settings(max_examples=20, deadline=None)
@given(arrays_of.arrays(np.uint8, st.tuples(st.integers(1, 3), st.just(3), st.integers(1, 5), st.integers(1, 5))))
def test_unpacking_undoes_packing(images):
    assert np.array_equal(packed.unpack_images(pack(images)), images)


# --- PNG -----------------------------------------------------------------------------------------------------------


def paeth(left, up, corner):
    distances = [abs(up - corner), abs(left - corner), abs(left + up - 2 * corner)]
    return (left, up, corner)[distances.index(min(distances))]


def encode_png(image, kinds):
    """A PNG with the given filter for each row, straight from the definition."""
    height, width, channels = image.shape
    at = lambda r, c, k: int(image[r, c, k]) if r >= 0 and c >= 0 else 0  # noqa: E731
    lines = bytearray()
    for r in range(height):
        lines.append(kinds[r])
        for c in range(width):
            for k in range(channels):
                left, up, corner = at(r, c - 1, k), at(r - 1, c, k), at(r - 1, c - 1, k)
                guess = (0, left, up, (left + up) // 2, paeth(left, up, corner))[kinds[r]]
                lines.append((int(image[r, c, k]) - guess) % 256)
    colour = {1: 0, 3: 2}[channels]
    header = struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0)
    chunk = lambda kind, body: struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))  # noqa: E731
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(bytes(lines)))
        + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize("channels", [1, 3])
def test_png_with_every_filter(channels):
    image = random_bytes(10, 7, channels)
    assert np.array_equal(png.decode_png(encode_png(image, [0, 1, 2, 3, 4] * 2)), image)


def test_png_agrees_with_pillow():
    pillow = pytest.importorskip("PIL.Image", reason="the oracle Pillow is not installed")
    image, file = random_bytes(9, 8, 3), io.BytesIO()
    pillow.fromarray(image).save(file, "png")
    assert np.array_equal(png.decode_png(file.getvalue()), image)


def test_files_that_are_not_png():
    with pytest.raises(DataError, match="not a PNG"):
        png.decode_png(b"GIF89a")


def test_cifar_as_png_strips(tmp_path, anything_goes):
    folder = tmp_path / "cifar10"
    folder.mkdir()
    images = random_bytes(2, 3, 32, 32)
    strip = encode_png(images.transpose(0, 2, 3, 1).reshape(2, 1024, 3), [1, 4])
    for batch in cifar.TRAIN_10 + cifar.TEST_10:
        (folder / f"{batch}.png").write_bytes(strip)
    (folder / "train_lables.json").write_text(json.dumps([3, 4] * 5))
    (folder / "test_lables.json").write_text(json.dumps([5, 6]))
    found = data.load("cifar10", folder=tmp_path)
    assert np.array_equal(np.rint(found.test.x.numpy() * 255), images)
    assert found.train.y.tolist() == [3, 4] * 5


# --- Location-30 and Purchase-100 ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "file", "member", "features", "classes"),
    [
        ("location30", "dataset_location.tgz", "bangkok", 446, 30),
        ("purchase100", "dataset_purchase.tgz", "dataset_purchase", 600, 100),
    ],
)
@pytest.mark.parametrize("quoted", [False, True])
def test_tables_of_yes_and_no(name, file, member, features, classes, quoted, tmp_path, anything_goes):
    bits, labels = random_bytes(20, features) % 2, random_bytes(20) % classes
    quote = '"' if quoted else ""
    rows = [f"{quote}{label + 1}{quote},{','.join(map(str, row))}" for label, row in zip(labels, bits, strict=True)]
    folder = tmp_path / name
    folder.mkdir()
    archive(folder / file, {member: "\n".join(rows).encode()})
    found = data.load(name, folder=tmp_path)
    assert (len(found.train), len(found.test), found.inputs, found.classes) == (16, 4, (features,), classes)
    order = np.random.RandomState(0).permutation(20)
    assert np.array_equal(found.train.x, bits[order[:16]])
    assert np.array_equal(found.test.y, labels[order[16:]])
    assert "80/20" in found.note


@pytest.mark.parametrize("raw", [b"1,0,2\n", b"0,0,1\n", b"3,0,1\n", b"1,0\n"])
def test_rows_that_are_not_of_the_dataset(raw):
    with pytest.raises(DataError):
        checkins.decode_rows(raw, features=2, classes=2)


# --- Adult ---------------------------------------------------------------------------------------------------------

RECORD = (
    "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, 2174, 0, 40, "
    "United-States, "
)


def test_adult_is_encoded_by_its_public_schema():
    x, y = adult.encode_adult(f"{RECORD}<=50K\n\n{RECORD}>50K\n")
    assert x.shape == (2, 108)
    assert y.tolist() == [0, 1]
    assert x[0, 0] == pytest.approx(0.39)
    assert x[0].sum() == pytest.approx(
        0.39 + 77516 / 1.5e6 + 12 / 15 + 0.02174 + 0.40 + 8
    )  # five numbers, eight choices


def test_the_test_file_has_a_comment_and_full_stops():
    x, y = adult.encode_adult(f"|1x3 Cross validator\n{RECORD}>50K.\n")
    assert (len(x), y.tolist()) == (1, [1])


def test_adult_plain_and_gzip_are_one(tmp_path, anything_goes):
    for name, wrap in (("", lambda b: b), (".gz", gzip.compress)):
        folder = tmp_path / f"root{name}" / "adult"
        folder.mkdir(parents=True)
        for part in ("data", "test"):
            (folder / f"adult.{part}{name}").write_bytes(wrap(f"{RECORD}>50K\n".encode()))
    assert fingerprint(data.load("adult", folder=tmp_path / "root").train.x.numpy()) == fingerprint(
        data.load("adult", folder=tmp_path / "root.gz").train.x.numpy()
    )


def test_the_clean_copy_is_scaled_by_the_same_ranges(tmp_path, anything_goes):
    folder = tmp_path / "adult-clean"
    folder.mkdir()
    rows = "age,sex_Male,salary_<=50K,salary_>50K\n" + "50,1,0,1\n25,0,1,0\n" * 5
    with zipfile.ZipFile(folder / "adult.csv.zip", "w") as file:
        file.writestr("adult.csv", rows)
    found = data.load("adult-clean", folder=tmp_path)
    assert found.inputs == (2,)
    assert {(*x.tolist(), int(y)) for x, y in zip(*found.train, strict=True)} == {(0.5, 1.0, 1), (0.25, 0.0, 0)}


# --- IMDb and GloVe ------------------------------------------------------------------------------------------------

TEXTS = {
    ("test", "neg"): ["An awful end, awful!"],
    ("train", "neg"): ["The film is awful, the END."],
    ("test", "pos"): ["the unseen film is good"],
    ("train", "pos"): ["The film is good; the film is good."],
}


def write_reviews(folder, form):
    folder.mkdir(parents=True)
    if form == "packaged":
        entries = [{"t": text, "s": int(kind == "pos")} for (_, kind), texts in TEXTS.items() for text in texts]
        (folder / "reviews.json").write_text(json.dumps(entries))
        return
    members = {
        f"aclImdb/{part}/{kind}/{number}_{9 if kind == 'pos' else 2}.txt": text.encode()
        for (part, kind), texts in TEXTS.items()
        for number, text in enumerate(texts)
    }
    archive(
        folder / "aclImdb_v1.tar.gz", {**members, "aclImdb/train/unsup/0_0.txt": b"no label", "aclImdb/README": b"x"}
    )


@pytest.mark.parametrize("form", ["official", "packaged"])
def test_reviews_from_text(form, tmp_path, anything_goes):
    write_reviews(tmp_path / "imdb", form)
    found = data.load("imdb", folder=tmp_path)
    words = imdb.imdb_words(tmp_path)
    assert words[4:8] == ["the", "film", "is", "good"]  # 4, 3, 3, 2 times in training, equal counts by alphabet
    read = [" ".join(words[i] for i in row if i > 3) for row in found.test.x]
    assert read == ["awful end awful", "the film is good"]  # unknown words are dropped
    assert found.train.y.tolist() == [0, 1]
    assert found.train.x.shape == (2, 80)
    assert found.train.x[:, 0].tolist() == [1, 1]
    assert found.train.assumes == (imdb.RANKED,), "which words have a number follows from the training texts"
    assert data.extract(found, "hashed-words").train.assumes == (), "a hash of the texts needs no list"


def test_texts_and_ratings(tmp_path):
    write_reviews(tmp_path / "imdb", "official")
    train, test = data.imdb_texts(tmp_path)
    assert train.texts == ("The film is awful, the END.", "The film is good; the film is good.")
    assert test.ratings == (2, 9)


def test_texts_that_are_absent(tmp_path):
    with pytest.raises(DataError, match="reticent data get imdb"):
        data.imdb_texts(tmp_path)


def test_rare_words_share_an_id():
    ranked = [f"w{n}" for n in range(20_010)]
    assert reviews.encode(["w0 w19995 w19996 w20009 nowhere"], ranked) == [[1, 4, 19_999, 2, 2]]


def write_glove(folder, form):
    folder.mkdir(parents=True)
    text = "\n".join(f"{word} " + " ".join(["0.5"] * 50) for word in ("the", "good", "sofa"))
    if form == "text":
        (folder / "glove.6B.50d.txt").write_text(text)
    if form == "zip":
        with zipfile.ZipFile(folder / "glove.6B.zip", "w") as file:
            file.writestr("glove.6B.50d.txt", text)


@pytest.mark.parametrize("form", ["text", "zip"])
def test_vectors_go_to_the_words_of_imdb(form, tmp_path, anything_goes):
    write_reviews(tmp_path / "imdb", "packaged")
    write_glove(tmp_path / "glove", form)
    vectors, known = data.glove(50, folder=tmp_path)
    words = imdb.imdb_words(tmp_path)
    assert {words[i] for i in known.nonzero()[:, 0]} == {"the", "good"}
    assert vectors.shape == (len(words), 50)
    assert float(vectors.sum()) == 50


def test_features_of_texts_know_every_word(tmp_path, anything_goes):
    write_reviews(tmp_path / "imdb", "packaged")
    write_glove(tmp_path / "glove", "text")
    found = data.load("imdb", folder=tmp_path)
    hashed = data.extract(found, "hashed-words")
    assert (hashed.test.x > 0).sum(1).tolist() == [3, 5], "also those that no training review has"
    assert hashed.train.assumes == (), "no list of words"
    means = data.extract(found, "glove-mean-50", folder=tmp_path)
    assert means.test.x[:, 0].tolist() == [0.0, 0.5], "of the words that GloVe knows"
    assert means.train.assumes == (GLOVE_TRAINED_ON,)


def test_absent_vectors_say_what_to_run(tmp_path):
    with pytest.raises(DataError, match="reticent data get glove"):
        data.glove(100, folder=tmp_path)


def test_other_sizes_of_vectors_are_refused():
    with pytest.raises(ValueError, match="50 or 100"):
        data.glove(300)


def test_glove_without_pyarrow_says_what_to_install(tmp_path, monkeypatch, anything_goes):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow.parquet", None)
    (tmp_path / "glove").mkdir()
    for file in ("glove_6B_50d_emb.npy", "glove_6B_index.parquet"):
        (tmp_path / "glove" / file).touch()
    with pytest.raises(DataError, match="reticent\\[glove\\]"):
        vectors.GLOVE[50].arrays(tmp_path)
