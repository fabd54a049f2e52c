# Sourced by ci/gate and ci/test: finds or creates the Python environment, and sets PYTHON.
#
#   --toolchain pip     (default) a virtual environment in .venv with everything that ci/constraints.txt pins,
#                       the CUDA compiler and tools included. Needs Python 3.11+, g++ and, the first time, network.
#   --toolchain system  the installed python3, packages and CUDA toolkit. Installs nothing from the network: missing
#                       packages, and compute-sanitizer, may be provided as wheels in .whl/ (or in the folder
#                       VERIFY_WHEELS).
#
# Other arguments are left in the array ARGUMENTS.

set -euo pipefail
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$ROOT"

TOOLCHAIN=pip
WHEELS=${VERIFY_WHEELS:-.whl}
ARGUMENTS=()
while [ $# -gt 0 ]; do
    case $1 in
        --toolchain) TOOLCHAIN=${2:?"--toolchain needs pip or system"}; shift 2 ;;
        --toolchain=*) TOOLCHAIN=${1#*=}; shift ;;
        *) ARGUMENTS+=("$1"); shift ;;
    esac
done

stop() { echo "$*" >&2; exit 3; }

BASE_PYTHON=${PYTHON:-python3}
command -v "$BASE_PYTHON" >/dev/null || stop "python3 is missing: install Python 3.11 or later"
"$BASE_PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    stop "$BASE_PYTHON is $("$BASE_PYTHON" -V 2>&1); Python 3.11 or later is needed (set PYTHON to another one)"
command -v g++ >/dev/null || stop "g++ is missing: install the system's C++ compiler"

# make_environment FOLDER EXTRA...: FOLDER/complete has a digest of the environment's inputs, then its extras, so that
# ci/gate and ci/test share it and neither needs the network twice.
make_environment() {
    local folder=$1 made from
    shift
    PYTHON=$ROOT/$folder/bin/python
    from=$(cat ci/constraints.txt pyproject.toml - <<<"$ROOT $("$BASE_PYTHON" -VV)" | "$BASE_PYTHON" -c \
        'import hashlib, sys; print(hashlib.sha256(sys.stdin.buffer.read()).hexdigest())')
    made=$(cat "$folder/complete" 2>/dev/null || true)
    if [ ! -x "$PYTHON" ] || [ "${made%% *}" != "$from" ]; then
        # shellcheck disable=SC2086
        set -- "$@" ${made#"${made%% *}"}  # what was in it before comes back: whoever put it there still needs it
        made=$from
        "$BASE_PYTHON" -m venv --clear "$folder" ||
            stop "$BASE_PYTHON cannot make a virtual environment: install its venv module (apt install python3-venv)"
    fi
    local extra missing=()
    for extra in "$@"; do
        case " $made ${missing[*]:-} " in *" $extra "*) ;; *) missing+=("$extra") ;; esac
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    echo "filling $folder: ${missing[*]} (once; needs the network)" >&2
    rm -f "$folder/complete"
    "$PYTHON" -m pip install --quiet --disable-pip-version-check --constraint ci/constraints.txt \
        --editable ".[$(IFS=,; echo "${missing[*]}")]" ||
        stop "the packages could not be installed; without network, see --toolchain system"
    echo "$made ${missing[*]}" >"$folder/complete"
}

# add_torch FOLDER: torch for the parity check, in FOLDER/torch and on PYTHONPATH. It stands apart from the rest because
# its CUDA builds pin other versions of NVIDIA's packages than the compiler's. Without it parity is not run, and says so.
add_torch() {
    local target=$ROOT/$1/torch pinned
    pinned=$(grep '^torch==' ci/parity-constraints.txt)
    if [ "$(cat "$target/complete" 2>/dev/null)" != "$pinned" ]; then
        echo "adding $pinned for the parity check (once; needs the network)" >&2
        rm -rf "$target"
        if "$PYTHON" -m pip install --quiet --disable-pip-version-check --target "$target" "$pinned"; then
            echo "$pinned" >"$target/complete"
        else
            echo "$pinned could not be installed: the parity check is not run" >&2
            rm -rf "$target"
        fi
    fi
    export PYTHONPATH=$target${PYTHONPATH:+:$PYTHONPATH}
}

# use_system MODULE...: the modules are names as they are imported.
use_system() {
    local missing folder=build/venv-system
    PYTHON=$BASE_PYTHON
    export PYTHONPATH=$ROOT${PYTHONPATH:+:$PYTHONPATH}
    missing=$(missing_modules "$@")
    if [ -n "$missing" ] && compgen -G "$WHEELS/*.whl" >/dev/null; then
        "$BASE_PYTHON" -m venv --system-site-packages "$folder" || stop "cannot make $folder for the wheels in $WHEELS"
        PYTHON=$ROOT/$folder/bin/python
        # shellcheck disable=SC2086
        "$PYTHON" -m pip install --quiet --disable-pip-version-check --no-index --find-links "$WHEELS" $missing ||
            stop "missing Python packages: $missing (the wheels in $WHEELS do not hold them all)"
        missing=$(missing_modules "$@")
    fi
    [ -z "$missing" ] || stop "missing Python packages: $missing (install them, or lay their wheels in $WHEELS)"
    find_system_sanitizer
}

missing_modules() {
    "$PYTHON" - "$@" <<'PY'
import importlib.util
import sys

names = {"xdist": "pytest-xdist", "pytest_timeout": "pytest-timeout"}
print(*(names.get(m, m) for m in sys.argv[1:] if importlib.util.find_spec(m) is None))
PY
}

# VERIFY_SANITIZER, if it is not set: a compute-sanitizer wheel among the wheels, unpacked once.
find_system_sanitizer() {
    local wheel folder=build/sanitizer
    [ -z "${VERIFY_SANITIZER:-}" ] || return 0
    wheel=$(compgen -G "$WHEELS/nvidia_cuda_sanitizer_api-*.whl" | sort | tail -n 1) || return 0
    if [ ! -f "$folder/$(basename "$wheel")" ]; then
        rm -rf "$folder"
        mkdir -p "$folder"
        "$BASE_PYTHON" -m zipfile -e "$wheel" "$folder"
        chmod -R u+rwX,a+x "$folder"
        touch "$folder/$(basename "$wheel")"
    fi
    export VERIFY_SANITIZER=$ROOT/$folder
}

# prepare "EXTRA..." MODULE...
prepare() {
    local extras=$1
    shift
    case $TOOLCHAIN in
        # shellcheck disable=SC2086
        pip) make_environment .venv $extras ;;
        system) use_system "$@" ;;
        *) echo "--toolchain is pip or system, not '$TOOLCHAIN'" >&2; exit 2 ;;
    esac
    export VERIFY_TOOLCHAIN=$TOOLCHAIN
    "$PYTHON" -m verify.toolchain.toolchain
}
