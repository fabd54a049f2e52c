"""Our own contracts, one ``*_contract.py`` per kernel."""
