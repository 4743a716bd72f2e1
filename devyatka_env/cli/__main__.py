"""``python -m devyatka_env.cli``."""

import sys

from devyatka_env.cli import main

sys.exit(main())
