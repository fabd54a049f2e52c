"""The wheel's layout: the package, and the project's other folders inside it as ``verify/data``.

Everything else about the distribution is in pyproject.toml; only this mapping cannot be written there without
a list of all packages.
"""

from setuptools import find_namespace_packages, setup

DATA = ("cuda", "fixtures", "harness_templates", "machine", "mutants")
RESOURCES = ["py.typed", "**/*.toml", "**/*.cu", "**/*.cuh"]

setup(
    packages=[*find_namespace_packages(include=["verify", "verify.*"]), *(f"verify.data.{d}" for d in DATA)],
    package_dir={f"verify.data.{d}": d for d in DATA},
    package_data={"verify": RESOURCES, **{f"verify.data.{d}": ["**/*"] for d in DATA}},
)
