"""The symbols and buffers of decode attention, shared by the contracts of the kernel and its library oracle.

The parity check passes a case from one to the other by these names (``KernelOracle``).
"""

from __future__ import annotations

from verify.contract.model import Buffer
from verify.contract.symbols import Symbol
from verify.contracts.attention.reference import live_slots

SYMBOLS = (
    Symbol("B", minimum=1, doc="sequences"),
    Symbol("NH", minimum=1, doc="query heads"),
    Symbol("NKV", minimum=1, doc="KV heads; divides NH"),
    Symbol("D", minimum=1, doc="head dimension; flash decoding has 64, 128, 256 and 512"),
    Symbol("capacity", minimum=1, doc="cache slots a sequence and KV head"),
    Symbol("window", default=0, minimum=0, doc="sliding window, 0 for none"),
    Symbol("len", "ints", doc="length of each sequence; below 0 counts as 0"),
    Symbol("scale", "float", default="1 / sqrt(D)", doc="softmax scale"),
    Symbol("q_row", default="NH * D", doc="elements from one sequence's queries to the next"),
    Symbol("out_row", default="NH * D", doc="elements from one sequence's output to the next"),
    Symbol("k_row", default="D", doc="elements from one K slot to the next"),
    Symbol("k_head", default="capacity * k_row", doc="elements from one KV head's keys to the next"),
    Symbol("k_batch", default="NKV * k_head", doc="elements from one sequence's keys to the next"),
    Symbol("v_row", default="D", doc="elements from one V slot to the next"),
    Symbol("v_head", default="capacity * v_row", doc="elements from one KV head's values to the next"),
    Symbol("v_batch", default="NKV * v_head", doc="elements from one sequence's values to the next"),
)

CACHE = ("B", "NKV", "capacity", "D")

BUFFERS = (
    Buffer("q", "bf16", ("B", "NH * D"), strides=("q_row", 1)),
    Buffer("k", "bf16", CACHE, strides=("k_batch", "k_head", "k_row", 1), live=live_slots),
    Buffer("v", "bf16", CACHE, strides=("v_batch", "v_head", "v_row", 1), live=live_slots),
    Buffer("lengths", "i32", ("B",), align=4),
    Buffer("out", "bf16", ("B", "NH * D"), "out", strides=("out_row", 1)),
)
