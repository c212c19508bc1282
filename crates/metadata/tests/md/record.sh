#!/bin/sh
# Made by the real kernel and the real mdadm, in a guest with six disks of
# 96 MiB: md's metadata of one array after the other, as hexadecimal dumps of
# the places where metadata lie, with what mdadm says of them. See SOURCES.
set -u
out=/root/md
mkdir -p "$out"
cd "$out" || exit 1
modprobe -a linear raid0 raid1 raid10 raid456 2>/dev/null
# udev's rules would assemble again what has just been stopped.
udevadm settle

disk() {
    readlink -f "/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_RAIDLAB$1"
}
a=$(disk 0) b=$(disk 1) c=$(disk 2) d=$(disk 3) e=$(disk 4) f=$(disk 5)
udevadm control --exit
export MDADM_NO_UDEV=1
mdadm="mdadm --quiet"
device=/dev/md0
sys=/sys/block/md0/md

wipe() {
    for one in "$a" "$b" "$c" "$d" "$e" "$f"; do
        dd if=/dev/zero of="$one" bs=1M count=3 2>/dev/null
        dd if=/dev/zero of="$one" bs=1M seek=94 count=2 2>/dev/null
    done
}

# create NAME ARGUMENT...: an array with a known uuid.
create() {
    title=$1
    shift
    wipe
    mdadm --stop "$device" >/dev/null 2>&1
    yes | mdadm --create "$device" --name="$title" --homehost=lab --run \
        --uuid=01234567:89abcdef:fedcba98:76543210 "$@" >>"$out/log" 2>&1
}

settled() {
    mdadm --wait "$device" >/dev/null 2>&1
    sync
    sleep 1
}

# record NAME DISK...: stops the array and dumps its members.
record() {
    title=$1
    shift
    mdadm --stop "$device" >>"$out/log" 2>&1
    number=0
    for one; do
        bytes=$(blockdev --getsize64 "$one")
        {
            echo "== $number dump"
            echo "size $bytes"
            echo "head"
            dd if="$one" bs=1024 count="${head_kib:-256}" 2>/dev/null | hexdump -C | cut -c1-58
            echo "tail $((bytes - 196608))"
            dd if="$one" bs=65536 skip=$((bytes / 65536 - 3)) 2>/dev/null | hexdump -C | cut -c1-58
            echo "== $number examine"
            mdadm --examine "$one"
            echo "== $number brief"
            mdadm --examine --brief "$one"
            echo "== $number bitmap"
            mdadm --examine-bitmap "$one"
            echo "== $number badblocks"
            mdadm --examine-badblocks "$one"
        } 2>&1 | sed "s,$one,MEMBER," >>"$title.txt"
        number=$((number + 1))
    done
    echo "$title recorded"
}

for version in 0.90 1.0 1.1 1.2; do
    short=$(echo "$version" | tr -d .)
    create "raid1-$short" -e "$version" -l1 -n2 --bitmap=internal "$a" "$b"
    settled
    record "raid1-$short" "$a" "$b"

    create "raid5-$short" -e "$version" -l5 -n3 -c64 --bitmap=none "$a" "$b" "$c" -x1 "$d"
    settled
    record "raid5-$short" "$a" "$b" "$c" "$d"

    create "raid6-$short" -e "$version" -l6 -n4 -c32 --bitmap=internal --bitmap-chunk=64K --assume-clean \
        "$a" "$b" "$c" "$d"
    $mdadm "$device" --fail "$b"
    dd if=/dev/zero of="$device" bs=64k count=1 seek=7 oflag=direct 2>/dev/null
    dd if=/dev/zero of="$device" bs=64k count=1 seek=300 oflag=direct 2>/dev/null
    sync
    sleep 12
    record "raid6-$short" "$a" "$b" "$c" "$d"

    create "raid10-$short" -e "$version" -l10 -n4 -po2 -c128 --bitmap=internal --assume-clean \
        "$a" "$b" missing "$d"
    record "raid10-$short" "$a" "$b" "$d"

    # mdadm 4.2 makes no RAID 0 with 0.90: it has no place for the layout.
    [ "$version" != 0.90 ] || continue
    create "raid0-$short" -e "$version" -l0 -n2 -c64 "$a" "$b"
    record "raid0-$short" "$a" "$b"
done

create linear -e 1.2 -l linear -n2 "$a" "$b"
record linear "$a" "$b"
create raid4 -e 1.2 -l4 -n3 --bitmap=none --assume-clean "$a" "$b" "$c"
record raid4 "$a" "$b" "$c"
create raid10-far -e 1.2 -l10 -n3 -pf2 --bitmap=none --assume-clean "$a" "$b" "$c"
record raid10-far "$a" "$b" "$c"

# Stopped in the middle of the first recovery and of a resync.
create recovering -e 1.2 -l5 -n3 -c64 --bitmap=none --force "$a" "$b" missing
echo 1000 >"$sys/sync_speed_max"
$mdadm "$device" --add "$c"
sleep 4
record recovering "$a" "$b" "$c"
create resyncing -e 1.2 -l6 -n4 -c64 --bitmap=none "$a" "$b" "$c" "$d"
echo 1000 >"$sys/sync_speed_max"
sleep 4
record resyncing "$a" "$b" "$c" "$d"

# Replacement under way; flags.
create replacing -e 1.2 -l1 -n2 --bitmap=none --assume-clean "$a" --write-mostly "$b"
$mdadm "$device" --add "$c"
echo 1000 >"$sys/sync_speed_max"
$mdadm "$device" --replace "$a" --with "$c"
sleep 3
record replacing "$a" "$b" "$c"

# Bad blocks, as the kernel writes them.
create badblocks -e 1.2 -l1 -n2 --bitmap=internal --assume-clean "$a" --failfast "$b"
echo "4096 8" >"$sys/dev-${a##*/}/bad_blocks"
echo "9000 700" >"$sys/dev-${a##*/}/bad_blocks"
$mdadm "$device" --add "$c"
sleep 1
record badblocks "$a" "$b" "$c"
create badblocks-10 -e 1.0 -l5 -n3 -c64 --bitmap=internal --assume-clean "$a" "$b" "$c"
echo "128 16" >"$sys/dev-${c##*/}/bad_blocks"
$mdadm "$device" --add "$d"
sleep 1
record badblocks-10 "$a" "$b" "$c"

# A reshape under way.
create reshaping -e 1.2 -l5 -n3 -c64 --bitmap=none --assume-clean "$a" "$b" "$c"
$mdadm "$device" --add "$d"
echo 1000 >"$sys/sync_speed_max"
mdadm --grow "$device" -n4 >>"$out/log" 2>&1
sleep 3
record reshaping "$a" "$b" "$c" "$d"

# What raidlab does not carry out but has to recognise.
head_kib=1200
create ppl -e 1.2 -l5 -n3 -c64 --consistency-policy=ppl --assume-clean "$a" "$b" "$c"
record ppl "$a" "$b" "$c"
unset head_kib
create journal -e 1.2 -l5 -n3 -c64 --write-journal="$d" "$a" "$b" "$c"
settled
record journal "$a" "$b" "$c" "$d"

# Members of different sizes: one of them is itself an array, a small one.
wipe
mdadm --create /dev/md9 --run --force -e 1.2 -l1 -n1 --size=30M "$e" >>"$out/log" 2>&1
create mixed -e 1.2 -l0 -n2 -c64 "$a" /dev/md9
record mixed "$a" /dev/md9

uname -r >"$out/kernel"
mdadm --version 2>"$out/mdadm"
cat "$out/log"
tar cf /root/md.tar -C /root md
