"""`python -m reticent` and `torchrun -m reticent`: the command line."""

from reticent.cli import main

if __name__ == "__main__":
    main()
