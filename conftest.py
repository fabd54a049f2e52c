"""Makes ``pytest verify/`` work in a checkout that is not installed; a wheel registers the plugin itself."""

pytest_plugins = ("verify.testing.plugin",)
