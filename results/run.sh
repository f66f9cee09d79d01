#!/bin/sh
# Every run behind results/README.md. It resumes: stop it whenever you like and start it again.
# About a day on two cores; the order is that of usefulness. Data are looked for where `reticent data list` says.
set -e
cd "$(dirname "$0")/.."
export OMP_NUM_THREADS=1
out=${1:-out}

reticent reproduce handcrafted --table best --cells "*mnist-linear*,*mnist-cnn*" --seeds 3 --out "$out/handcrafted"
reticent reproduce handcrafted --table best --cells "*mnist-end-to-end*" --seeds 3 --out "$out/end-to-end"
reticent reproduce results/best.toml --table best --seeds 3 --out "$out/best"
reticent reproduce results/ablation.toml --table parts --seeds 3 --out "$out/ablation"
reticent reproduce results/steps.toml --table linear --cells 'fashion-mnist-*-eps1-*,mnist-*-eps3-*' --out "$out/steps-linear"
reticent reproduce results/steps.toml --table networks --out "$out/steps-networks"
python results/steps.py "$out"
for data in fashion-mnist mnist; do
    reticent compare --config results/methods.toml --data "$data" --seeds 3 --out "$out/methods-$data"
done
for data in adult location30; do
    reticent compare --config results/tables.toml --data "$data" --seeds 3 --out "$out/methods-$data"
done
reticent reproduce results/dpis-batches.toml --table steps --out "$out/steps-dpis"
reticent reproduce results/dpis-batches.toml --table batches --seeds 3 --out "$out/dpis-batches"
reticent reproduce dpsur --table 2 --cells "*mnist-ts-eps1" --seeds 3 --out "$out/tempered-sigmoids"
reticent reproduce dpsur --table 2 --cells "mnist-dpsur*-eps1" --as-claimed --seeds 3 --out "$out/dpsur-as-claimed"
reticent reproduce results/dpsur-state.toml --table coded --seeds 3 --out "$out/dpsur-state-coded"
reticent reproduce results/dpsur-state.toml --table paid --cells '*-eps1' --seeds 3 --out "$out/dpsur-state-paid"
reticent reproduce results/deniability.toml --table ablation --seeds 3 --out "$out/deniability"
reticent compare --config results/imdb.toml --seeds 3 --out "$out/imdb"
reticent reproduce results/stages.toml --table steps --out "$out/steps-stages"
reticent compare --config results/network.toml --seeds 3 --out "$out/network"
reticent reproduce results/cifar10.toml --table linear --seeds 3 --out "$out/cifar10"
reticent compare --config results/location30.toml --seeds 3 --out "$out/location30"
for run in "$out"/location30/runs/*-seed0; do
    reticent attack "$run" --models 8
done
python results/defaults.py "$out"
python results/papers.py "$out/papers" --as-claimed --seeds 3 --minutes 1200
python results/collect.py "$out"
