"""Builds a case: runs a profile over a resolved fixture and rounds its values to the buffers' formats."""

from __future__ import annotations

import hashlib

import numpy as np

from verify.case.case import Case
from verify.case.default_profiles import DEFAULT_PROFILES
from verify.case.profile import Profile
from verify.contract import Contract
from verify.fixture.resolve import ResolvedFixture
from verify.oracle.formats import FORMATS, encode


class ProfileError(ValueError):
    """A profile that does not fit its contract; the message names contract, profile and buffer."""


def profiles_of(contract: Contract) -> tuple[Profile, ...]:
    """The contract's profiles, or the default ones for floating-point inputs."""
    return contract.profiles or DEFAULT_PROFILES


def build_case(contract: Contract, resolved: ResolvedFixture, profile: Profile) -> Case:
    """Host arrays for one kernel x fixture x profile; the same on every machine and run.

    Raises ProfileError when the profile gives a buffer that the contract lacks, misses one, gives a shape
    that is not the buffer's view, or needs more memory than there is.
    """
    fixture = resolved.fixture
    empty = Case(contract, fixture.name, profile.name, resolved.symbols, resolved.plan, {}, fixture.sparse)
    generator = seeded_generator(contract.name, fixture.name, profile.name)
    try:
        given = profile.generate(empty, generator)
    except MemoryError as error:
        sizes = ", ".join(f"{name} = {value}" for name, value in resolved.symbols.items())
        raise ProfileError(
            f"{fixture.file}: {fixture.name}: symbols: the arrays of profile {profile.name} do not fit into "
            f"this machine's memory ({error}): {sizes}"
        ) from None
    at = f"{contract.name}: profile {profile.name}"

    arrays: dict[str, np.ndarray] = {}
    for key, values in given.items():
        name, _, storage = key.partition(":")
        if name not in {b.name for b in contract.buffers}:
            raise ProfileError(f"{at}: gives {name!r}, which the contract does not have")
        buffer = contract.buffer(name)
        if storage == "raw":
            raw = np.asarray(values, FORMATS[empty.dtype(buffer)].storage)
        else:
            raw = encode(empty.dtype(buffer), np.asarray(values))
        shape = empty.shape(buffer)
        if raw.shape != shape:
            raise ProfileError(f"{at}: {name}: has shape {raw.shape}, the contract says {shape}")
        arrays[name] = raw
    for buffer in contract.buffers:
        if buffer.role in ("in", "inout") and buffer.name not in arrays:
            raise ProfileError(f"{at}: {buffer.name}: is an input without data")
    return Case(contract, fixture.name, profile.name, resolved.symbols, resolved.plan, arrays, fixture.sparse)


def build_cases(contract: Contract, resolved: ResolvedFixture) -> tuple[Case, ...]:
    """All cases of a fixture: the profiles that it names, or all of the contract's."""
    wanted = resolved.fixture.profiles
    return tuple(
        build_case(contract, resolved, p) for p in profiles_of(contract) if not wanted or p.name in wanted
    )


def first_case(contract: Contract, resolved: ResolvedFixture) -> Case:
    """A fixture's case of its first profile."""
    wanted = resolved.fixture.profiles
    first = next(p for p in profiles_of(contract) if not wanted or p.name in wanted)
    return build_case(contract, resolved, first)


def seeded_generator(*parts: str) -> np.random.Generator:
    """A generator that depends on the names alone."""
    seed = int.from_bytes(hashlib.sha256("/".join(parts).encode()).digest()[:8], "little")
    return np.random.default_rng(seed)
