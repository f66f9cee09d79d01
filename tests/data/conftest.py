"""Tests of the data room never touch the user's cache, and find large datasets where a user would have them."""

import os

import pytest

from reticent.data.loading.places import data_folder


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory):
    before = os.environ.get("RETICENT_CACHE")
    os.environ["RETICENT_CACHE"] = str(tmp_path_factory.mktemp("cache"))
    yield
    if before is None:
        del os.environ["RETICENT_CACHE"]
    else:
        os.environ["RETICENT_CACHE"] = before


@pytest.fixture
def large():
    """Skips, with the reason, unless the data folder holds the dataset; answers the folder."""

    def folder(name):
        found = data_folder()
        if not (found / name).is_dir():
            pytest.skip(f"{name} is not in {found}: set $RETICENT_DATA or run `reticent data get {name}`")
        return found

    return folder
