"""`python -m torture`: see `torture.run`."""

import sys

from torture.run import main

if __name__ == "__main__":
    sys.exit(main())
