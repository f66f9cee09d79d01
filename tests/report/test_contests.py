"""Which method wins where: only proved runs of one comparison meet, seed by seed."""

from reticent.report.contests import as_map, contests, verdict
from reticent.report.summary import Spread

PLACE = {"command": "reticent compare --config a.toml", "data": "mnist", "model": "linear", "target_epsilon": 1.0}


def run(label: str, seed: int, accuracy: float, **others: object) -> dict[str, object]:
    return {**PLACE, "label": label, "seed": seed, "accuracy": accuracy, "epsilon": 1.0, **others}


def runs(label: str, *accuracies: float, **others: object) -> list[dict[str, object]]:
    return [run(label, seed, accuracy, **others) for seed, accuracy in enumerate(accuracies)]


def test_a_gain_is_taken_seed_by_seed():
    (one,) = contests([*runs("dpsgd", 0.90, 0.80, 0.70), *runs("dpsur", 0.91, 0.81, 0.711)])
    assert one.baseline == "dpsgd"
    gain = one.gains["dpsur"]
    assert round(gain.mean, 4) == 1.0333
    assert verdict(gain) == "wins", "though the seeds of each differ by ten points"


def test_the_better_baseline_is_the_one_to_beat():
    (one,) = contests([*runs("dpsgd", 0.5, 0.5, 0.5), *runs("dpadam", 0.7, 0.7, 0.7), *runs("dpsur", 0.6, 0.6, 0.61)])
    assert one.baseline == "dpadam"
    assert verdict(one.gains["dpsur"]) == "loses"


def test_what_is_not_proved_at_the_budget_or_not_compared_does_not_take_part():
    base = runs("dpsgd", 0.9, 0.9, 0.9)
    claimed = runs("pd_sgd", 0.99, 0.99, 0.99, epsilon=None)
    over = runs("dpsur", 0.99, 0.99, 0.99, epsilon=1.7)
    elsewhere = runs("dpis", 0.99, 0.99, 0.99, command="reticent reproduce dpis --table 3")
    assert contests([*base, *claimed, *over, *elsewhere]) == []


def test_one_seed_says_nothing_and_the_map_marks_only_what_is_sure():
    found = contests([*runs("dpsgd", 0.9, 0.9, 0.9), *runs("dpsur", 0.95), *runs("auto_s", 0.91, 0.91, 0.912)])
    assert verdict(found[0].gains["dpsur"]) == "unknown"
    assert list(as_map(found)) == [
        ["", "mnist, linear, epsilon 1"],
        ["baseline", "dpsgd 90.00 %"],
        ["auto_s", "+1.07*"],
        ["dpsur", "+5.00"],
    ]


def test_an_interval_around_nothing_ties():
    assert verdict(Spread.of([-0.1, 0.0, 0.2])) == "ties"
