"""The 2-D scattering transform (Bruna and Mallat 2013) of orders 0 to 2, in batches.

Filters multiply in frequency, where subsampling in space is folding; the last low-pass is a small matrix on each side,
so that no transform back and forth is spent on it. One image's features depend on that image alone.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from reticent.data.features.wavelets import coarsen, low_pass, wavelet
from reticent.errors import DataError

_PLANES = 32  # at a time: what they need still fits into a processor's cache


class Scattering:
    """Scattering of images of one shape over `scales` octaves in `angles` directions.

    >>> Scattering((28, 28))(torch.zeros(2, 1, 28, 28)).shape
    torch.Size([2, 81, 7, 7])
    >>> Scattering((32, 32))(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 243, 8, 8])
    """

    def __init__(self, shape: tuple[int, int], *, scales: int = 2, angles: int = 8, dtype: torch.dtype = torch.float32):
        self.shape, self.scales, self.angles, self.dtype = shape, scales, angles, dtype
        cell = 2**scales
        self._padded = tuple((size // cell + 2) * cell for size in shape)
        margins = [padded - size for padded, size in zip(self._padded, shape, strict=True)]
        if any(margin - margin // 2 >= size for margin, size in zip(margins, shape, strict=True)):
            raise DataError(f"images of {shape} are too small to scatter over {scales} scales: use fewer scales")
        self._margins = [edge for margin in reversed(margins) for edge in (margin // 2, margin - margin // 2)]
        self._wavelets = {
            (scale, octave): self._bank(scale, octave) for scale in range(scales) for octave in range(scale + 1)
        }
        self._averages = [[self._average(size, octave) for size in self._padded] for octave in range(scales)]

    def __repr__(self) -> str:
        return f"Scattering({self.shape}, scales={self.scales}, angles={self.angles})"

    @torch.no_grad()
    def __call__(self, images: Tensor) -> Tensor:
        """Features of a batch of images (N, C, H, W): N x C * channels x H / 2**scales x W / 2**scales."""
        if images.ndim != 4 or tuple(images.shape[2:]) != self.shape:
            raise DataError(f"expected images (N, C, {self.shape[0]}, {self.shape[1]}), got {tuple(images.shape)}")
        if not len(images):  # which transforms do not take
            return self(images.new_zeros(1, *images.shape[1:]))[:0]
        planes = functional.pad(images.flatten(0, 1).to(self.dtype)[:, None], self._margins, mode="reflect")
        features = torch.cat([self._scatter(part) for part in torch.split(planes, _PLANES)])
        return features.reshape(len(images), -1, *features.shape[-2:])

    def _scatter(self, planes: Tensor) -> Tensor:
        """Orders 0, 1, 2 of planes (N, 1, H, W), one channel for each path."""
        first, second = [self._smooth(planes, 0)], []
        spectrum = torch.fft.fft2(planes)
        for scale in range(self.scales):
            waves = self._modulus(spectrum, scale, 0)
            first.append(self._smooth(waves, scale))
            if scale + 1 < self.scales:
                second.append(self._second_order(waves, scale))
        return torch.cat(first + second, dim=1)

    def _second_order(self, waves: Tensor, scale: int) -> Tensor:
        """All coarser wavelets of the moduli of one scale; channels ordered by first path, then second."""
        spectrum = torch.fft.fft2(waves)
        coarser = range(scale + 1, self.scales)
        paths = [self._smooth(self._modulus(spectrum, after, scale), after) for after in coarser]
        by_first = [path.reshape(len(path), self.angles, self.angles, *path.shape[2:]) for path in paths]
        return torch.cat(by_first, dim=2).flatten(1, 2)

    def _modulus(self, spectrum: Tensor, scale: int, octave: int) -> Tensor:
        """|signal * wavelet| for every direction, subsampled as the scale allows; `octave` is the signal's own."""
        folded = _fold(spectrum, self._wavelets[scale, octave], 2 ** (scale - octave))
        waves: Tensor = torch.fft.ifft2(folded)
        return waves.abs().flatten(1, 2)

    def _smooth(self, signal: Tensor, octave: int) -> Tensor:
        """Average over 2**scales pixels, subsample to one value a cell, drop the padding."""
        rows, columns = self._averages[octave]
        return rows @ (signal @ columns.T)

    def _bank(self, scale: int, octave: int) -> Tensor:
        """The wavelets of one scale for signals subsampled by 2**octave, each value twice (real, imaginary)."""
        height, width = self._padded
        turns = [coarsen(wavelet((height, width), scale, turn, self.angles), octave) for turn in range(self.angles)]
        # Folding averages the aliases; the mean's divisor goes into the filter.
        bank = np.stack(turns) / 4 ** (scale - octave)
        return torch.from_numpy(bank.repeat(2, axis=-1)).to(self.dtype)

    def _average(self, size: int, octave: int) -> Tensor:
        """The matrix that low-passes one axis (a circulant), keeps one value a cell and drops the padded cells."""
        kernel = np.real(np.fft.ifft(coarsen(low_pass(size, self.scales), octave)))
        circulant = np.stack([np.roll(kernel, shift) for shift in range(len(kernel))])
        kept = circulant[:: 2 ** (self.scales - octave)][1:-1]
        return torch.from_numpy(kept).to(self.dtype)


def _fold(spectrum: Tensor, filters: Tensor, factor: int) -> Tensor:
    """Every filter times every spectrum (N, C, H, W), aliased onto a grid coarser by `factor`."""
    count, channels, height, width = spectrum.shape
    aliases = (factor, height // factor, factor, 2 * width // factor)
    # Real and imaginary parts side by side: complex times real is then one multiply-add on floats.
    signal = torch.view_as_real(spectrum).reshape(count, channels, 1, *aliases)
    filters = filters.reshape(-1, *aliases)
    folded = signal.new_zeros(count, channels, len(filters), aliases[1], aliases[3])
    for row, column in product(range(factor), repeat=2):
        folded.addcmul_(signal[..., row, :, column, :], filters[..., row, :, column, :])
    return torch.view_as_complex(folded.reshape(*folded.shape[:-1], -1, 2))
