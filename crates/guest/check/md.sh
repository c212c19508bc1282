#!/bin/sh
# Inside the guest: real md arrays of four levels, each built, filled, broken,
# repaired and checked, with real fio reading back what it wrote. Prints one
# line for each step: level, step, seconds. Ends with 0 when every step did
# what it must.
set -u

log=/tmp/step.log
level=
members=

now() { cut -d' ' -f1 /proc/uptime; }

# step NAME COMMAND...: runs it; on failure says what it said and ends all.
step() {
    name=$1
    shift
    begun=$(now)
    if ! "$@" >"$log" 2>&1; then
        printf '%s FAILED: %s: %s\n' "$level" "$name" "$*"
        tail -n 20 "$log"
        cat /proc/mdstat
        dmesg | tail -n 20
        exit 1
    fi
    printf '%-7s %-28s %6.1f s\n' "$level" "$name" \
        "$(echo "$begun $(now)" | awk '{ print $2 - $1 }')"
}

# What fio writes says which filling it is of and where it belongs: old data
# and data of another place are noticed, as fio's own check sums would not.
pattern() {
    fio --name=pattern --filename=/dev/md0 --ioengine=libaio --iodepth=8 --direct=1 \
        --bs=64k --rw=randwrite --size=48m \
        --verify=pattern --verify_pattern="\"fill$1\"%o" "$2"
}
fill() { pattern "$1" --do_verify=0; }
verify() { pattern "$1" --verify_only=1; }

# What must fail: a check that cannot is none.
fails() { ! "$@"; }

measure() {
    fio --name=measure --filename=/dev/md0 --ioengine=libaio --iodepth=8 --direct=1 --bs=4k \
        --rw=randread --runtime=3 --time_based --output-format=json --output=/tmp/measure.json &&
        iops=$(awk -F'[:,]' '/"iops" :/ { print int($2); exit }' /tmp/measure.json) &&
        [ "$iops" -gt 0 ]
}

# attribute NAME VALUE: a file of /sys/block/md0/md says so.
attribute() {
    said=$(cat "/sys/block/md0/md/$1")
    [ "$said" = "$2" ] || { echo "$1 is $said, not $2"; return 1; }
}
degraded() { attribute degraded "$1"; }

settled() {
    # mdadm --wait ends with 1 when there is nothing to wait for.
    mdadm --wait /dev/md0
    udevadm settle
    while [ "$(cat /sys/block/md0/md/sync_action)" != idle ]; do sleep 0.1; done
    degraded 0
}

scrubbed() {
    echo check >/sys/block/md0/md/sync_action && settled && attribute mismatch_cnt 0
}

# pull DISK: the host takes it away while the array runs. md notices when it
# next writes there.
pull() {
    echo 1 >"/sys/block/$1/device/delete" && udevadm settle &&
        fill 3 && degraded 1 && mdadm /dev/md0 --remove detached
}

# Put back under whatever name it gets now, known by its serial number.
insert() {
    for host in /sys/class/scsi_host/host*; do echo '- - -' >"$host/scan"; done
    udevadm settle
    [ -b "$1" ] || return 1
    # The rules of udev may have re-added it already.
    grep -q "\b$(basename "$(readlink -f "$1")")\[" /proc/mdstat ||
        mdadm /dev/md0 --re-add "$1" || mdadm /dev/md0 --add "$1"
}

level() {
    level=$1
    shift
    disks=$1
    shift
    members=
    index=0
    while [ "$index" -lt "$disks" ]; do
        members="$members $(disk "$index")"
        index=$((index + 1))
    done
    last=$(disk $((disks - 1)))
    # Word splitting is wanted: a list of devices.
    # shellcheck disable=SC2086
    step create mdadm --create /dev/md0 --run --metadata=1.2 --level="$level" \
        --raid-devices="$disks" --bitmap=internal "$@" $members
    step resync settled
    step write fill 1
    step read-back verify 1
    step measure measure
    step fail mdadm /dev/md0 --fail "$last"
    step remove mdadm /dev/md0 --remove "$last"
    step is-degraded degraded 1
    step read-back-degraded verify 1
    step write-degraded fill 2
    step old-data-are-noticed fails verify 1
    step re-add mdadm /dev/md0 --re-add "$last"
    step recover-by-bitmap settled
    step fail-again mdadm /dev/md0 --fail "$last" --remove "$last"
    step forget mdadm --zero-superblock "$last"
    step add-as-new mdadm /dev/md0 --add "$last"
    step recover-whole settled
    step read-back verify 2
    step scrub scrubbed
    step pull pull "$(basename "$(readlink -f "$last")")"
    step read-back-pulled verify 3
    step insert insert "$last"
    step recover settled
    step read-back verify 3
    step scrub scrubbed
    step stop mdadm --stop /dev/md0
    # shellcheck disable=SC2086
    step zero mdadm --zero-superblock $members
}

disk() { echo "/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_RAIDLAB$1"; }

echo 1000000 >/proc/sys/dev/raid/speed_limit_min
echo 1000000 >/proc/sys/dev/raid/speed_limit_max

level 1 2
level 5 4 --chunk=64
level 6 5 --chunk=64
level 10 4 --chunk=64
