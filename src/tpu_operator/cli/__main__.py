"""`python -m tpu_operator.cli` is `tpu-operator`."""

from tpu_operator.cli import main

if __name__ == "__main__":
    main()
