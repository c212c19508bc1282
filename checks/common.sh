# shellcheck shell=bash
# What every check has in common. A check begins with
#
#   source "$(dirname "$0")/common.sh"
#
# and stands in the root of the tree then, with `here` (where the caller stands), `root`,
# `target` (cargo's folder) and these functions. Each check takes RAIDLAB=PATH for a program that is built already, and
# PROGRAMS=FOLDER, such as target/debug, for the program and the examples.
set -euo pipefail
# Where the caller stands: paths that are given are meant from there.
here=$PWD
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# What a check is called where it speaks of itself: `check`, `checks/host`.
check=$(realpath "$0")
check=${check#"$root"/}
# Debian keeps mdadm and its like where an ordinary user's shell does not look.
PATH=$PATH:/usr/sbin:/sbin:$HOME/.cargo/bin
target=$(realpath --canonicalize-missing "${CARGO_TARGET_DIR:-$root/target}")
cd "$root"

# fail WORDS...: ends the check, which has found something.
fail() {
    printf '%s: %s\n' "$check" "$*" >&2
    exit 1
}

# lacks WHAT REMEDY: ends the check, which cannot begin.
lacks() {
    fail "$1 is missing: $2"
}

# holds [WORDS]: the last line of a check that found nothing.
holds() {
    printf '\n%s: everything holds%s, %s s\n' "$check" "${1:+, $1}" "$SECONDS"
}

# rows_of_jobs <FILE.jsonl: how many of these rows are of jobs. How many the array has of what it
# did by itself depends on when a sample was taken.
rows_of_jobs() {
    grep --count '"op":"\(read\|write\)"' || true
}

# The package of Debian that has a program.
package_of() {
    case $1 in
    cc | c++) echo build-essential ;;
    aarch64-linux-gnu-gcc) echo 'gcc-aarch64-linux-gnu libc6-dev-arm64-cross' ;;
    dropbear | dropbearkey) echo dropbear-bin ;;
    losetup) echo mount ;;
    lvm) echo lvm2 ;;
    man) echo man-db ;;
    mkfs.btrfs) echo btrfs-progs ;;
    mkfs.ext4) echo e2fsprogs ;;
    musl-gcc) echo musl-tools ;;
    nbdcopy | nbdinfo) echo libnbd-bin ;;
    pkill) echo procps ;;
    qemu-aarch64-static) echo qemu-user-static ;;
    qemu-img | qemu-io | qemu-nbd) echo qemu-utils ;;
    qemu-system-x86_64) echo 'qemu-system-x86 qemu-block-extra' ;;
    ssh | ssh-keygen) echo openssh-client ;;
    xfs_repair) echo xfsprogs ;;
    xz) echo xz-utils ;;
    sbatch | scontrol | squeue) echo slurm-client ;;
    *) echo "$1" ;;
    esac
}

# needs PROGRAM...: ends the check where one of them is not installed, and says how it
# gets here.
needs() {
    local program
    for program; do
        command -v "$program" >/dev/null || case $program in
        cargo) lacks cargo 'install Rust: checks/setup, or https://rustup.rs' ;;
        *) lacks "$program" "apt-get install $(package_of "$program")" ;;
        esac
    done
}

# step COMMAND...: says what is run, runs it, and keeps what it took for `steps_took`.
took=()
step() {
    local from=$SECONDS
    printf '\n== %s\n' "$*"
    "$@"
    took+=("$(printf '%5d s  %s' "$((SECONDS - from))" "$*")")
}

# at_once COMMAND...: runs commands, each one argument, beside each other; fails where one of
# them does. What the first says is shown as it comes, what another has said when all have ended.
at_once() {
    local outputs command place status=0 running=()
    outputs=$(mktemp -d)
    for command in "${@:2}"; do
        $command >"$outputs/${#running[@]}" 2>&1 &
        running+=($!)
    done
    $1 || status=1
    for place in "${!running[@]}"; do
        wait "${running[place]}" || status=1
        cat "$outputs/$place"
    done
    rm -rf "$outputs"
    return "$status"
}

steps_took() {
    printf '\nWhat each step took:\n'
    printf '%s\n' "${took[@]}"
}

# built NAME: prints the path of a program of this tree: the one that the variable of the
# environment in capitals names (RAIDLAB=PATH), the one in the folder PROGRAMS, or one that
# is built now, in target/release or target/debug as `profile` says. To be used as
# `raidlab=$(built raidlab)`.
profile=release
built() {
    local name=$1 given=${1^^} package=raidlab kind=--example place=examples/$1
    local folder=$target/$profile
    case $name in
    raidlab)
        kind=--bin
        place=raidlab
        ;;
    in_guest) package=raidlab-guest ;;
    judge_pages) package=raidlab-report ;;
    crash_writer | nbd_server) package=raidlab-serve ;;
    *) fail "no program is called $name" ;;
    esac
    if [[ -n ${!given:-} ]]; then
        cd "$here"
        realpath "${!given}"
        return
    fi
    if [[ -n ${PROGRAMS:-} ]]; then
        cd "$here"
        folder=$(realpath "$PROGRAMS")
    else
        needs cargo cc
        cd "$root"
        cargo build --profile "${profile/debug/dev}" --locked --quiet \
            --package "$package" "$kind" "$name" >&2
    fi
    printf '%s\n' "$folder/$place"
}
