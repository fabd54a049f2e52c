"""``python -m verify``."""

from verify.cli.app import main

if __name__ == "__main__":
    main()
