#!/usr/bin/env bash
# One case: `case.sh WORKER 'DISKS' WHAT LEVEL LAYOUT MEMBERS VERSION`; ends with
# 0 when it holds. What it says is of interest when it does not.
set -eEuo pipefail

here=$(dirname "$0")
read -ra disks <<<"$2"
what=$3 level=$4 layout=$5 members=$6 version=$7
array=w$1
md=/dev/md$1
# The arrays that are members of it, in the nested cases.
inner=(/dev/md1$1 /dev/md2$1)
md_state=/sys/block/md$1/md
room=/dev/shm/$array

. "$here/steps.sh"
. "$here/tests.sh"

trap 'echo "failed: line $LINENO of ${BASH_SOURCE[0]##*/}: $BASH_COMMAND"; show_state' ERR
trap clear_away EXIT
clear_away
prepare
"$what"
