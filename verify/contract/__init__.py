"""The contract: the model of what a kernel promises, and how a contract is found, read and checked."""
