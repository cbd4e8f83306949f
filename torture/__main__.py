"""`python -m torture`: see `torture.run`."""

from torture.run import main

if __name__ == "__main__":
    main()
