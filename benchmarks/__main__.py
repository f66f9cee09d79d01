"""`python -m benchmarks`: a private step against plain SGD and the peers; `--help` says how to run a part of it."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from pathlib import Path

from benchmarks.growth import CURVES, grow
from benchmarks.models import CASES
from benchmarks.networks import NETWORKS
from benchmarks.peers import PEERS
from benchmarks.race import race
from benchmarks.tables import made_by, write_plot, write_table
from benchmarks.worker import CLOCKS
from reticent.experiments.record import about_this_machine


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--cases",
        default=",".join(name for name in CASES if name not in NETWORKS),
        help="which models (default: the papers')",
    )
    parser.add_argument("--networks", action="store_true", help="those of Hugging Face instead")
    parser.add_argument("--peers", default=",".join(PEERS), help="who runs; ask for `sgd` to get ratios")
    parser.add_argument("--curves", default=",".join(CURVES), help="which growth curves, or `none`")
    parser.add_argument("--malloc", default="default,tuned", help="allocator settings to run under")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--clock", choices=CLOCKS, default="wall", help="cpu: for one thread on a busy machine")
    parser.add_argument("--rounds", type=int, default=7, help="turns of each peer")
    parser.add_argument("--seconds", type=float, default=1.0, help="how long a turn lasts, about")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    parser.add_argument("--again", action="store_true", help="measure also what the folder already holds")
    return parser.parse_args()


def main() -> None:
    """Run what is asked for and not yet in the folder, then write table and plot from all that is there."""
    asked = arguments()
    asked.cases = ",".join(NETWORKS) if asked.networks else asked.cases
    asked.out.mkdir(parents=True, exist_ok=True)
    about = {"command": shlex.join(["python", "-m", "benchmarks", *sys.argv[1:]]), **about_this_machine().to_json()}
    store = asked.out / "results.jsonl"
    records = [json.loads(line) for line in store.read_text().splitlines()] if store.exists() else []
    for case in filter(None, asked.cases.split(",")):
        for malloc in asked.malloc.split(","):
            here = (case, malloc, asked.threads, asked.clock)
            if not asked.again and any(_setting(record) == here for record in records):
                continue
            found = race(
                case,
                asked.peers.split(","),
                threads=asked.threads,
                malloc=malloc,
                clock=asked.clock,
                rounds=asked.rounds,
                seconds=asked.seconds,
            )
            others = [record for record in records if _setting(record) != here]
            records = others + [about | record for record in found]
            store.write_text("".join(json.dumps(record) + "\n" for record in records))
            for record in found:
                print(_line(record), flush=True)
    if asked.curves != "none":
        wanted = {curve: CURVES[curve] for curve in asked.curves.split(",")}
        grow(wanted, asked.out, made_by(about), threads=asked.threads, clock=asked.clock, seconds=2.0)
    if records:
        write_table(records, asked.out / "table.md")
        write_plot(records, asked.out / "plot.svg")
        print(f"wrote {asked.out / 'table.md'} and {asked.out / 'plot.svg'}")


def _setting(record: dict) -> tuple[str, str, int, str]:
    return record["case"], record["malloc"], record["threads"], record.get("clock", "wall")


def _line(record: dict) -> str:
    head = f"{record['case']:16} {record['malloc']:8} {record['peer']:18}"
    if "absent" in record:
        return f"{head} absent: {record['absent']}"
    return f"{head} {record['ms']:9.2f} ms  x{record.get('ratio', float('nan')):6.2f}  {record['peak']:6.0f} MB"


if __name__ == "__main__":
    main()
