# Sourced by scripts/demo and scripts/test: makes .venv and installs into it, once. POSIX sh.
#
#   PYTHON         interpreter that makes .venv                  (python3)
#   FITUNE_TORCH   what pip installs as torch, before all else   (torch==2.13.0)
#   FITUNE_VENV    where the environment lies                    (.venv)

cd "$(dirname "$0")/.."
VENV="${FITUNE_VENV:-.venv}"
TORCH="${FITUNE_TORCH:-torch==2.13.0}"

say() { printf '\n== %s\n' "$*"; }

# prepare EXTRAS STAMP: install the extras unless that was done for the same pyproject.toml, torch and Python.
prepare() {
    if [ ! -x "$VENV/bin/python" ]; then
        say "Making $VENV"
        "${PYTHON:-python3}" -m venv "$VENV" || {
            echo "No virtual environment could be made. On Debian or Ubuntu: apt install python3-venv" >&2
            exit 1
        }
    fi
    "$VENV/bin/python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' || {
        echo "fitune needs Python 3.10 or newer; $VENV has $("$VENV/bin/python" -V). Set PYTHON and delete $VENV." >&2
        exit 1
    }
    stamp="$VENV/fitune-$2.stamp"
    wanted="$1 $TORCH $("$VENV/bin/python" -V) $(cksum < pyproject.toml)"
    if [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then
        return 0
    fi
    # torch first and by itself: which build it is, is the user's choice, and later steps then keep it.
    say "Installing $TORCH"
    "$VENV/bin/python" -m pip install --disable-pip-version-check -q "$TORCH"
    say "Installing fitune[$1]"
    "$VENV/bin/python" -m pip install --disable-pip-version-check -q -e ".[$1]"
    printf '%s' "$wanted" > "$stamp"
}
