# Shared by tools/quickstart and tools/run-tests: messages with times, the packages, the CUDA toolkit, configure and build.
# Sourced; expects `set -euo pipefail`. Exit codes: 1 something failed, 2 wrong use, 3 something is missing that can't be installed.
# shellcheck shell=bash

source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build_root=$source_dir/build
started=$SECONDS

if [[ -t 1 && -z ${NO_COLOR:-} ]]; then bold=$'\e[1m' dim=$'\e[2m' plain=$'\e[0m'; else bold='' dim='' plain=''; fi

# Everything that building and testing needs. clang-format and shellcheck are optional: their checks are skipped, and say so.
readonly debian_packages=(
  g++ binutils cmake ninja-build ccache python3 util-linux
  libspdlog-dev libfmt-dev libboost-dev nlohmann-json3-dev libcli11-dev libtomlplusplus-dev libncurses-dev
  libzstd-dev zlib1g-dev coinor-libcbc-dev coinor-libclp-dev libeigen3-dev liblz4-dev libxxhash-dev libunwind-dev libdw-dev libgtest-dev libbenchmark-dev
  node-d3 llvm-dev
)
# Only where the CUDA toolkit has to come from pip's wheels.
readonly debian_packages_for_wheels=(python3-pip ca-certificates)
readonly cuda_wheels=(nvidia-cuda-nvcc nvidia-cuda-runtime nvidia-cuda-crt nvidia-nvvm nvidia-cuda-cccl nvidia-cuda-cupti)
readonly cuda_wheel_version='13.0.*'

elapsed() { printf '%d:%02d' $(((SECONDS - started) / 60)) $(((SECONDS - started) % 60)); }
heading() { printf '%s== %s%s %s[%s]%s\n' "$bold" "$1" "$plain" "$dim" "$(elapsed)" "$plain"; }
note() { printf '   %s\n' "$*"; }
die() {
  local code=$1
  shift
  printf '\n%s: %s\n' "$(basename "$0")" "$1" >&2
  shift
  ((!$#)) || printf '  %s\n' "$@" >&2
  exit "$code"
}

# The system's own python3 (the tools need nothing beyond its standard library), whatever else stands first in PATH.
python() {
  if [[ -x /usr/bin/python3 ]]; then /usr/bin/python3 "$@"; else python3 "$@"; fi
}

# Prints those of the named Debian packages that are not installed.
missing_packages() {
  local package
  for package in "$@"; do
    [[ $(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || echo "$package"
  done
}

install_packages() {
  local missing=() as_root=() apt=()
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    die 3 "this machine has no apt (Debian or Ubuntu is expected)" "needed, under the names of Debian: $*"
  fi
  mapfile -t missing < <(missing_packages "$@")
  ((${#missing[@]})) || return 0
  if ((EUID != 0)); then
    command -v sudo >/dev/null ||
      die 3 "packages are missing, and this is neither root nor is there sudo" "as root: apt-get install ${missing[*]}"
    as_root=(sudo)
  fi
  note "installing ${missing[*]}"
  apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 -q)
  local log=$build_root/logs/apt.log
  mkdir -p "$build_root/logs"
  # The lists are fetched where they are empty, or where what they name is no longer to be had.
  local have_lists=yes
  apt-cache show "${missing[@]}" >/dev/null 2>&1 || have_lists=no
  if [[ $have_lists == no ]] || ! "${apt[@]}" install -y --no-install-recommends "${missing[@]}" >"$log" 2>&1 </dev/null; then
    note "apt-get update"
    "${apt[@]}" update >"$log" 2>&1 </dev/null || { tail -n 5 "$log" >&2; die 3 "apt-get update failed" "log: $log"; }
    "${apt[@]}" install -y --no-install-recommends "${missing[@]}" >"$log" 2>&1 </dev/null || {
      tail -n 10 "$log" >&2
      die 3 "these packages could not be installed: ${missing[*]}" "log: $log"
    }
  fi
  mapfile -t missing < <(missing_packages "$@")
  ((!${#missing[@]})) || die 3 "apt-get said yes, but these packages are still missing: ${missing[*]}" "log: $log"
}

# The toolkit into build/cuda from pip's wheels. They have the layout of a toolkit under nvidia/cu13; they are unpacked by hand
# because `pip install` is refused where Python is managed by the system. Put in place by one rename: a half-unpacked folder is never seen.
unpack_cuda_wheels() {
  local work=$build_root/cuda.partial log=$build_root/logs/cuda-wheels.log wheel requirements=()
  local machine
  machine=$(uname -m)
  [[ $machine == x86_64 || $machine == aarch64 ]] || die 3 "no CUDA toolkit found, and pip has none for $machine"
  install_packages python3 "${debian_packages_for_wheels[@]}"
  for wheel in "${cuda_wheels[@]}"; do requirements+=("$wheel==$cuda_wheel_version"); done
  note "fetching ${requirements[*]}"
  rm -rf "$work"
  mkdir -p "$work/wheels" "$build_root/logs"
  python -m pip download --no-deps --only-binary=:all: --no-input --disable-pip-version-check --dest "$work/wheels" \
    "${requirements[@]}" >"$log" 2>&1 </dev/null || {
    tail -n 5 "$log" >&2
    die 3 "no CUDA toolkit, and pip could not fetch one" \
      "missing: nvcc and headers, version 13.0 or later" \
      "looked for in CUDA_HOME, PATH, /usr/local/cuda; then pip's ${requirements[*]}" "log: $log"
  }
  for wheel in "$work"/wheels/*.whl; do python -m zipfile -e "$wheel" "$work/unpacked"; done
  local root=$work/unpacked/nvidia/cu13
  [[ -f $root/bin/nvcc ]] || die 3 "the wheels have no nvidia/cu13/bin/nvcc: their layout has changed" "unpacked in $work"
  # zipfile drops the run bits, and wheels can't hold the links that a toolkit has.
  chmod +x "$root"/bin/* "$root"/nvvm/bin/*
  ln -sfn lib "$root/lib64"
  ln -sfn libcudart.so.13 "$root/lib/libcudart.so"
  rm -rf "$build_root/cuda"
  mv "$root" "$build_root/cuda"
  rm -rf "$work"
}

# Sets CUDA_HOME for CMake and nvcc. Exit code 3 when there is no toolkit and none can be had.
provide_cuda() {
  local found why
  why=$(mktemp)
  if ! found=$("$source_dir/tools/lib/find-cuda" 2>"$why"); then
    note "no CUDA toolkit:"
    sed 's/^/   /' "$why"
    unpack_cuda_wheels
    found=$("$source_dir/tools/lib/find-cuda" 2>"$why") || {
      sed 's/^/   /' "$why" >&2
      rm -f "$why"
      die 3 "the CUDA toolkit from pip's wheels is not usable" "missing: nvcc and headers, version 13.0 or later"
    }
  fi
  rm -f "$why"
  export CUDA_HOME=$found
  note "CUDA toolkit: $CUDA_HOME"
}

set_up() {
  heading "Packages"
  install_packages "${debian_packages[@]}"
  note "all ${#debian_packages[@]} are there"
  provide_cuda
}

# Prints CMake's settings for a preset beyond its own, one a line: for run-tests to say.
preset_settings() { :; }

# build PRESET [TARGET]: configure where needed, build the target or everything; the log is kept, the end of it shown when something fails.
build() {
  local preset=$1 log=$build_root/logs/$1-build.log from=$SECONDS jobs=${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}
  mkdir -p "$build_root/logs"
  heading "Build $preset"
  local settings=()
  mapfile -t settings < <(preset_settings "$preset")
  if ! (cd "$source_dir" && cmake --preset "$preset" -DMEMOPT_CUDA_ROOT="$CUDA_HOME" "${settings[@]}") >"$log" 2>&1 </dev/null; then
    tail -n 30 "$log" >&2
    die 1 "configuring $preset failed" "log: $log"
  fi
  local code=0
  NINJA_STATUS='[%f/%t] ' ninja -C "$build_root/$preset" -j "$jobs" "${@:2}" </dev/null 2>&1 | tee -a "$log" | show_progress || code=$?
  if ((code)); then
    # What failed first is far above the end where others were compiling beside it; killed compilers leave no such line.
    grep -nE '(error|FAILED|undefined reference|Killed)' "$log" | tail -n 30 >&2 || tail -n 15 "$log" >&2
    die 1 "building $preset failed" "log: $log"
  fi
  note "built in $((SECONDS - from)) s"
}

# Reads ninja's lines and shows where it is: at most one line in five seconds, and always the last.
show_progress() {
  local line shown=$((SECONDS - 5)) last=''
  while IFS= read -r line; do
    [[ $line == *'['*/*']'* ]] || continue
    last=$line
    if ((SECONDS - shown >= 5)); then
      printf '   %s\n' "${line:0:110}"
      shown=$SECONDS
      last=''
    fi
  done
  [[ -z $last ]] || printf '   %s\n' "${last:0:110}"
}
