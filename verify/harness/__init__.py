"""The harness: the program that runs a kernel, rendered, built and cached."""
