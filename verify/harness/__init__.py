"""The harness: found toolchain, rendered source, built and cached binary."""
