"""``python -m dkrls_cli`` is ``dkrls``."""

from dkrls_cli.cli import main

if __name__ == "__main__":
    main()
