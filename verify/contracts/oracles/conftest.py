"""An oracle is asked by the parity check, with fills that it can bear; as a kernel it would leak others."""

collect_ignore_glob = ["*_contract.py"]
