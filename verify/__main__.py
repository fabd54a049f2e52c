"""``python -m verify``."""

import sys


def main() -> None:
    try:
        from verify.cli.app import main as command
    except KeyboardInterrupt:  # the imports take most of a second, in which Ctrl-C is as likely as later
        print("verify: interrupted", file=sys.stderr)
        sys.exit(130)
    command()


if __name__ == "__main__":
    main()
