"""The harness's built programs and stand-in runtime serve the reports' tests too."""

from tests.harness.conftest import fake_runtime, guarded  # noqa: F401
