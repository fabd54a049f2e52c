"""Excludes oracles from collection: only the parity check runs them, with fills that they tolerate."""

collect_ignore_glob = ["*_contract.py"]
