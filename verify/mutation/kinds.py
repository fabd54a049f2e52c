"""The kinds of fault that kernels of this class have had, by what goes wrong in them."""

from __future__ import annotations

from enum import StrEnum


class Kind(StrEnum):
    """A kind of fault. Its value is a short stable name; ``sentence`` says what it is."""

    sentence: str

    def __new__(cls, name: str, sentence: str) -> Kind:
        """A member of the name ``name``."""
        member = str.__new__(cls, name)
        member._value_ = name
        member.sentence = sentence
        return member

    @classmethod
    def named(cls, name: str) -> Kind:
        """The kind of a name. Raises ValueError."""
        for kind in cls:
            if kind.value == name:
                return kind
        raise ValueError(f"{name!r} is not one of {', '.join(cls)}")

    DEAD_READ = "dead read", "unset or dead cache read"
    BOUNDS = "bounds", "out of bounds, tail, unwritten output"
    EMPTY = "empty part", "empty or wholly masked part, softmax state"
    RESCALE = "rescale", "rescale and merge arithmetic"
    SPLITS = "splits", "split coverage, split count, unset partials"
    STRIDES = "strides", "batch and head strides, map of heads, tile step"
    WINDOW = "window edge", "window edge or window ignored"
    MASKED = "window as mask", "window as a mask only"
    RING = "ring", "ring wrap and append"
    OVERFLOW = "index overflow", "32-bit index overflow"
    RACE = "race", "shared-memory race; asynchronous copy's wait, commit, depth"
    WARP = "warp", "warp shuffle and sync; divergent barrier"
    BLOCKS = "between blocks", "order between blocks: fence, semaphore, zeroing"
    WORKSPACE = "workspace", "workspace stale, shared, undersized"
    VARIANCE = "variance", "non-determinism, batch variance"
    STREAM = "stream", "stream, programmatic launch, lifetime of a host buffer, CUDA graph"
    LAUNCH = "launch", "launch configuration, shared-memory opt-in, swallowed errors, refusals"
    ARCHITECTURE = "architecture", "architecture-specific, alignment"
    QUANTISED = "quantised", "FP4 and FP8 codes, nibble order, scales and groups, K and N tails"
    RANGE = "range", "range and contraction"
    MODIFIERS = "score modifiers", "softcap, sink, ALiBi"
    JUDGE = "judge", "faults of the judge itself"
    ARITHMETIC = "arithmetic", "another value, sign or order in ordinary arithmetic"


NOT_PRESENT = {
    Kind.BLOCKS: "no kernel has blocks that wait for each other; flash_decode's two are ordered by a launch",
    Kind.MODIFIERS: "no kernel has a softcap, a sink or ALiBi slopes",
    Kind.JUDGE: "these are mutants of verify/ itself, killed by tests/",
}
"""Kinds that no kernel of the suite has, with the reason."""
