"""`python -m prejudge.core.cli`."""

from .main import main

main()
