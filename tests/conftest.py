"""Skips tests with the marker ``gpu`` on a machine without a GPU. tests/README.md has the conventions."""

from __future__ import annotations

import pytest

from verify.device.gpu import GpuDevice


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a marked test, with the reason, if there is no GPU."""
    if item.get_closest_marker("gpu") is not None:
        answer = GpuDevice().available()
        if not answer.ok:
            pytest.skip(f"needs a GPU: {answer.reason}")


@pytest.fixture(params=["cpu", pytest.param("gpu", marks=pytest.mark.gpu)], scope="session")
def device_name(request: pytest.FixtureRequest) -> str:
    """Each device in turn; without a GPU its half is skipped."""
    return str(request.param)
