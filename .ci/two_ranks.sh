#!/usr/bin/env bash
# One private training on two processes: what comes of it must verify as that of one does.
set -euo pipefail
cd "$(dirname "$0")/.."
bin="${BIN:-.venv/bin}"
out="$(mktemp -d)"
trap 'rm -rf "$out"' EXIT
export OMP_NUM_THREADS=1 GLOO_SOCKET_IFNAME=lo

"$bin/torchrun" --standalone --nproc-per-node 2 --max-restarts 1 -m reticent train \
  --data digits --method dpsgd --epsilon 3 --epochs 2 --out "$out/run" --resume
"$bin/reticent" verify "$out/run"
