# dnf for a root folder of the user's own: it refuses to install for who is not root, even where it only downloads.
import sys

import dnf.cli.main
import dnf.util

dnf.util.am_i_root = lambda: True
dnf.cli.main.user_main(sys.argv[1:], exit_code=True)
