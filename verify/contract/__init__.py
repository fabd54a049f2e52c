"""The contract: the model of a kernel's specification, and how contracts are found, loaded and validated."""
