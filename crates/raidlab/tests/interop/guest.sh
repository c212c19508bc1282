#!/usr/bin/env bash
# In a guest with real md: runs cases of interoperation, several at a time, and
# prints a row for each. A case has disks, an md device and a name of its own,
# so that cases do not meet.
#
#   guest.sh short|full WORKERS
#
# Rows go to standard output as they come; ends with 0 when every one holds.
# ONLY=TEXT runs the cases whose line in cases.sh contains the text.
set -u

here=$(dirname "$0")
form=$1
workers=$2
# As many as the largest case needs, with one that joins later.
disks_each=6
# What is used of each member, in KiB, and noise in MiB: more than any array of a case has.
export USED=10240
noise=72
if [[ $form == short ]]; then
    USED=4096
    noise=16
fi

# udev would assemble what raidlab has just let go of, and answers mdadm.
udevadm control --exit 2>/dev/null
rm -f /run/udev/control
export MDADM_NO_UDEV=1 DM_DISABLE_UDEV=1
echo 2000000 >/proc/sys/dev/raid/speed_limit_max
echo 1000000 >/proc/sys/dev/raid/speed_limit_min
mount -o remount,size=1200m /dev/shm
dd if=/dev/urandom of=/dev/shm/noise bs=1M count="$noise" status=none
mapfile -t all < <(ls -d /dev/sd? | sort)
if ((${#all[@]} < workers * disks_each)); then
    echo "guest.sh: ${#all[@]} disks are too few for $workers workers" >&2
    exit 2
fi

. "$here/cases.sh"
cases "$form" | grep -e "${ONLY:-}" >/dev/shm/cases
printf '%-9s %-20s %-8s %-4s %-26s %-7s %4s  %s\n' level layout members md direction result s note

# Takes the next case; each is taken once.
next_case() {
    local number=0 line
    while IFS= read -r line; do
        number=$((number + 1))
        if mkdir "/dev/shm/taken.$number" 2>/dev/null; then
            printf '%s\n' "$line"
            return
        fi
    done </dev/shm/cases
    return 1
}

# A row for a case; what it said, when it does not hold.
run_case() {
    local worker=$1 what=$3 level=$4 layout=$5 members=$6 version=$7
    local room=/dev/shm/w$worker begun=$SECONDS result=holds note=
    mkdir -p "$room"
    rm -f "$room/note"
    if bash "$here/case.sh" "$@" >"$room/said" 2>&1; then
        : >"/dev/shm/held.$level.$layout.$members.$version.$what"
    else
        result=FAILS
    fi
    if [[ -f $room/note ]]; then note=$(<"$room/note"); fi
    printf '%-9s %-20s %-8s %-4s %-26s %-7s %4s  %s\n' \
        "$level" "$layout" "$members" "$version" "$what" "$result" $((SECONDS - begun)) "$note"
    if [[ $result == FAILS || -n ${LOUD:-} ]]; then
        sed 's/^/    | /' "$room/said"
    fi
}

worker() {
    local line own=("${all[@]:$1 * disks_each:disks_each}")
    while line=$(next_case); do
        # shellcheck disable=SC2086
        run_case "$1" "${own[*]}" $line
    done
}

for ((number = 0; number < workers; number++)); do
    worker "$number" &
done
wait

wanted=$(wc -l </dev/shm/cases)
held=$(ls /dev/shm | grep -c '^held\.')
echo "$held of $wanted cases hold, $SECONDS s in the guest"
((held == wanted && wanted > 0))
