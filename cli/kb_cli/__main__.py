"""``python -m kb_cli`` is ``kb``."""

import sys

from kb_cli import main

sys.exit(main())
