"""Every form that is compared, in the order of the recording. Standard library only."""

from .carry_forms import carry_forms
from .compare_forms import compare_forms
from .convert_forms import convert_forms
from .forms import Form, bit_forms, float_forms, half_forms, integer_forms, special_forms
from .pair_forms import pair_forms
from .video_forms import video_forms
from .warp_forms import atomic_forms, memory_forms, warp_forms
from .wide_forms import wide_forms

FAMILIES = {
    "integer": integer_forms,
    "carry": carry_forms,
    "bits": bit_forms,
    "float": float_forms,
    "special": special_forms,
    "half": half_forms,
    "convert": convert_forms,
    "compare": compare_forms,
    "warp": warp_forms,
    "atomic": atomic_forms,
    "memory": memory_forms,
    "pair": pair_forms,
    "video": video_forms,
    "wide": wide_forms,
}


def all_forms() -> list[Form]:
    """Every form that runs on both sides, in a fixed order."""
    forms = [form for family in FAMILIES.values() for form in family()]
    keys = [form.key for form in forms]
    if len(keys) != len(set(keys)):
        raise ValueError(f"two forms of one name: {sorted(k for k in keys if keys.count(k) > 1)[:4]}")
    return forms
