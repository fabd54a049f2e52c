"""Our own contracts, one ``*_contract.py`` a kernel."""
