"""An oracle is asked by the parity check, with fills that it can bear; as a kernel of its own it would leak them."""

collect_ignore_glob = ["*_contract.py"]
