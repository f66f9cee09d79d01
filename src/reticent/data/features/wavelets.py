"""Filters of the 2-D scattering transform: Morlet wavelets and a Gaussian low-pass, in frequency.

The constants are those of the transform the papers used (kymatio's Scattering2D), so that features agree with theirs.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

Real = npt.NDArray[np.float64]

_SIGMA = 0.8  # width of the finest wavelet in pixels
_FREQUENCY = 0.75 * math.pi  # its centre in radians a pixel
_PI = 3.1415  # as the reference normalises; pi itself would move every feature by 3e-5


def wavelet(shape: tuple[int, int], scale: int, turn: int, angles: int) -> Real:
    """The Morlet wavelet of this scale and direction: a wave under an oval Gaussian, less what gives it a mean.

    >>> abs(wavelet((36, 36), scale=0, turn=3, angles=8)[0, 0].item()) < 1e-12
    True
    """
    sigma, angle, slant = _SIGMA * 2**scale, (angles // 2 - 1 - turn) * math.pi / angles, 4 / angles
    wave = _gabor(shape, sigma, angle, _FREQUENCY / 2**scale, slant)
    envelope = _gabor(shape, sigma, angle, 0.0, slant)
    return np.real(np.fft.fft2(wave - envelope * (wave.sum() / envelope.sum())))


def low_pass(size: int, scales: int) -> Real:
    """One axis of the Gaussian that averages over 2**scales pixels; the filter is its outer product with itself."""
    sigma = _SIGMA * 2 ** (scales - 1)
    return np.real(np.fft.fft(_wrap(np.exp(-(_axis(size) ** 2) / (2 * sigma**2)), 0) / (math.sqrt(2 * _PI) * sigma)))


def coarsen(spectrum: Real, octaves: int) -> Real:
    """The filter for signals subsampled by 2**octaves along each axis: its low frequencies alone.

    >>> coarsen(np.arange(8.0), 1)
    array([0., 1., 6., 7.])
    """
    for axis, size in enumerate(spectrum.shape):
        kept = size >> octaves
        order = np.fft.fftfreq(size, 1 / size)
        low = np.flatnonzero((order >= -(kept // 2)) & (order < kept - kept // 2))
        spectrum = np.take(spectrum, low, axis)
    return spectrum


def _gabor(
    shape: tuple[int, int], sigma: float, angle: float, frequency: float, slant: float
) -> npt.NDArray[np.complex128]:
    down, right = _axis(shape[0])[:, None], _axis(shape[1])
    along = down * math.cos(angle) + right * math.sin(angle)
    across = right * math.cos(angle) - down * math.sin(angle)
    envelope = np.exp(-(along**2 + (slant * across) ** 2) / (2 * sigma**2)) * slant / (2 * _PI * sigma**2)
    return _wrap(_wrap(envelope * np.exp(1j * frequency * along), 0), 1)


def _axis(size: int) -> Real:
    """Coordinates over five periods: enough for the tails to wrap around the image."""
    return np.arange(-2 * size, 3 * size, dtype=np.float64)


def _wrap(values: npt.NDArray[Any], axis: int) -> npt.NDArray[Any]:
    """Add the five periods onto one."""
    one: npt.NDArray[Any] = np.stack(np.split(values, 5, axis)).sum(0)
    return one
