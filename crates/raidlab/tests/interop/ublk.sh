#!/usr/bin/env bash
# In a guest whose kernel has ublk: arrays over files as block devices.
#
# The first disk holds the files. Lines that begin with `at:` say what holds.
set -eEuo pipefail
trap 'echo "failed in line $LINENO: $BASH_COMMAND"; cat "$log"; dmesg | tail -n 40' ERR

log=/run/log
: >"$log"
control=/run/control
server=0

say() {
    echo "at: $* ($SECONDS s)"
}

fail() {
    echo "failed: $*"
    cat "$log"
    dmesg | tail -n 40
    exit 1
}

# Serves in the background until the server says that the block device $device is there. It is
# there earlier, but who kills a server while the kernel looks for partitions stops both for ever.
serve() {
    local before
    device=$1
    shift
    before=$(grep -c "^  as $device$" "$log" || true)
    raidlab serve --control "$control" "$@" 2>>"$log" &
    server=$!
    until (($(grep -c "^  as $device$" "$log" || true) > before)); do
        kill -0 "$server" 2>/dev/null || fail "no server: $*"
        sleep 0.1
    done
    disk=/sys/block/${device##*/}
}

# What must be refused, with these words.
refused() {
    local words=$1
    shift
    if "$@" >/run/refused 2>&1; then
        fail "not refused: $*"
    fi
    grep -q -- "$words" /run/refused || {
        cat /run/refused
        fail "not said: $words"
    }
}

# The server has ended, and well.
ended() {
    wait "$server" || fail "the server ended with $?"
    nothing_left
}

# No device of any kind.
nothing_left() {
    [[ -z $(find /dev -name 'ublk[bc]*') ]] || fail "left: $(echo /dev/ublk*)"
    [[ -z $(ls /sys/class/ublk-char) ]] || fail "left: $(ls /sys/class/ublk-char)"
}

health() {
    raidlab detail "$control" | sed -n 's/.*State : //p'
}

mended() {
    raidlab wait "$control"
    [[ $(health) == *"$1"* ]] || fail "the array is $(health)"
}

# Writes all of the first $1 MiB in random order and reads them back.
verify() {
    local size=$1
    shift
    fio --name=verify --filename="$device" --direct=1 --ioengine=libaio --iodepth=16 \
        --rw=randwrite --bssplit=4k/40:32k/30:256k/20:1m/10 --size="${size}m" --fsync=50 \
        --verify=crc32c --verify_fatal=1 --verify_backlog=64 --minimal "$@" \
        >/run/fio 2>&1 || {
        cat /run/fio
        fail 'fio found differences'
    }
}

sums() {
    (cd /mnt && find . -type f -print0 | xargs -0 md5sum | sort -k 2)
}

# --- the members

mkfs.ext4 -q -F /dev/sda
mkdir -p /srv
mount /dev/sda /srv
cd /srv
truncate -s 48M a b c d e m n
raidlab create --level 6 --raid-devices 5 --chunk 64 --assume-clean --bitmap internal a b c d e
raidlab create --level 1 --raid-devices 2 --assume-clean --bitmap internal m n

# --- without the driver

[[ ! -e /dev/ublk-control ]] || fail 'the driver is there before it was loaded'
refused 'no ublk driver' raidlab serve --ublk --control "$control" a b c d e
refused 'modprobe ublk_drv' raidlab serve --ublk --control "$control" a b c d e
modprobe ublk_drv
say 'without its driver it is said what to do'

# --- a RAID 6

serve /dev/ublkb0 --ublk a b c d e
size=$(raidlab detail "$control" --json | sed 's/.*"size_bytes":\([0-9]*\).*/\1/')
[[ $(blockdev --getsize64 "$device") == "$size" ]] || fail "the size is not $size"
[[ $(<"$disk/queue/logical_block_size") == 512 ]] || fail 'logical blocks'
[[ $(<"$disk/queue/physical_block_size") == 4096 ]] || fail 'physical blocks'
[[ $(<"$disk/queue/write_cache") == 'write back' ]] || fail 'the write cache'
[[ $(<"$disk/queue/fua") == 1 ]] || fail 'FUA'
[[ $(<"$disk/queue/discard_max_bytes") -gt 0 ]] || fail 'discard'
[[ $(<"$disk/queue/write_zeroes_max_bytes") -gt 0 ]] || fail 'write zeroes'
[[ $(blockdev --getro "$device") == 0 ]] || fail 'it is read-only'
verify 24 &
verifying=$!
several=
while [[ -z $several ]] && kill -0 "$verifying" 2>/dev/null; do
    read -r reads writes <"$disk/inflight"
    ((reads + writes < 2)) || several=yes
done
wait "$verifying" || fail 'fio found differences'
[[ -n $several ]] || fail 'never two requests at once'
say 'RAID 6: fio verifies, with several requests at once'
verify 8 --sync=1
say 'RAID 6: fio verifies, every write with FUA'

# Not faster than that, so that there is time for what happens meanwhile.
(verify 48 --rate=4m && touch /run/verified) &
verifying=$!
sleep 2
raidlab manage "$control" --fail a --remove a
sleep 2
echo "  $(health)"
raidlab manage "$control" --re-add a
[[ ! -e /run/verified ]] || fail 'fio ended before the member came back'
wait "$verifying" || fail 'fio found differences'
mended '[UUUUU]'
say 'RAID 6: fio verifies while a member fails and is re-added'

# --- discard and zeroes

dd if=/dev/urandom of=/run/noise bs=1M count=8 status=none
dd if=/run/noise of="$device" bs=1M oflag=direct status=none
blkdiscard --offset $((4 << 20)) --length $((1 << 20)) "$device"
blkdiscard --zeroout --offset $((1 << 20)) --length $((2 << 20)) "$device"
cp /run/noise /run/expected
dd if=/dev/zero of=/run/expected bs=1M seek=1 count=2 conv=notrunc status=none
for part in 0:4 5:3; do
    skip=${part%:*} count=${part#*:}
    cmp <(dd if=/run/expected bs=1M skip="$skip" count="$count" status=none) \
        <(dd if="$device" bs=1M skip="$skip" count="$count" iflag=direct status=none) ||
        fail 'zeroes or their neighbours differ'
done
say 'discard and zeroes'

# --- a file system

mkfs.ext4 -q -F "$device"
mount "$device" /mnt
cp -r /usr/sbin /mnt/first
raidlab manage "$control" --fail b --remove b
cp -r /usr/sbin /mnt/second
raidlab manage "$control" --re-add b
cp -r /usr/sbin /mnt/third
sums >/run/sums
umount /mnt
mended '[UUUUU]'
e2fsck -f -n "$device" >/run/fsck 2>&1 || fail "$(cat /run/fsck)"
mount "$device" /mnt
sums | cmp - /run/sums || fail 'files differ'
say 'a file system while a member fails and is re-added'

# --- the end

refused 'ublkb0 is mounted' raidlab stop "$control"
refused 'ublkb0 is mounted' raidlab manage "$control" --readonly
umount /mnt
raidlab manage "$control" --action check
raidlab wait "$control"
raidlab detail "$control" --json | grep -q '"mismatch_sectors":0,' || fail 'a check finds mismatches'
# Still in the page cache when it is stopped.
dd if=/run/noise of="$device" bs=1M seek=64 status=none
raidlab stop "$control"
ended
say 'stopped: no mismatch, nothing left'

serve /dev/ublkb0 --readonly --ublk a b c d e
[[ $(blockdev --getro "$device") == 1 ]] || fail 'it can be written'
refused '' dd if=/run/noise of="$device" bs=1M count=1 oflag=direct
cmp <(dd if="$device" bs=1M skip=64 count=8 status=none) /run/noise || fail 'the page cache was lost'
kill -TERM "$server"
ended
say 'read-only; what was in the page cache was written; SIGTERM leaves nothing'

# --- killed

serve /dev/ublkb0 --ublk a b c d e
mkfs.ext4 -q -F "$device"
mount "$device" /mnt
cp -r /usr/sbin /mnt/first
sync
sums >/run/sums
(cd /mnt && while cp -r first more 2>/dev/null; do :; done) &
sleep 1
kill -9 "$server"
wait "$server" 2>/dev/null && fail 'it was not killed' || true
wait || true
for _ in {1..100}; do
    [[ -b /dev/ublkb0 ]] || break
    sleep 0.1
done
[[ ! -b /dev/ublkb0 ]] || fail 'the block device outlives its server'
[[ -c /dev/ublkc0 ]] || fail 'nothing is left of it'
# Its number is not free while it is mounted.
refused 'a device 0 already, without a server' \
    raidlab serve --ublk=0 --control "$control" a b c d e
umount /mnt
serve /dev/ublkb0 --ublk=0 a b c d e
mount "$device" /mnt
rm -rf /mnt/more
sums | cmp - /run/sums || fail 'files differ'
umount /mnt
mended '[UUUUU]'
raidlab stop "$control"
ended
# Once more with nobody who holds it.
serve /dev/ublkb0 --ublk a b c d e
kill -9 "$server"
wait "$server" 2>/dev/null || true
until [[ ! -b /dev/ublkb0 ]]; do sleep 0.1; done
[[ -c /dev/ublkc0 ]] || fail 'nothing is left of it'
: >"$log"
serve /dev/ublkb0 --ublk a b c d e
grep -q 'ublk: device 0 of a killed server is deleted' "$log" || fail 'it was not swept up'
say 'killed: only the number is left, and the next server sweeps it up'
raidlab stop "$control"
ended
# Told to end while the kernel looks for partitions.
raidlab serve --control "$control" --ublk a b c d e 2>>"$log" &
server=$!
until [[ -b /dev/ublkb0 ]]; do :; done
kill -TERM "$server"
ended
serve /dev/ublkb0 --ublk a b c d e
say 'SIGTERM leaves nothing while the device begins'

# --- errors

raidlab manage "$control" --fail a --fail b
dd if="$device" of=/dev/null bs=1M count=4 iflag=direct status=none || fail 'two may fail'
# And the third has nothing to read any more.
truncate -s 1M c
refused 'Input/output error' dd if="$device" of=/dev/null bs=1M count=4 iflag=direct
refused 'Input/output error' dd if=/run/noise of="$device" bs=1M count=4 oflag=direct
echo "  $(health)"
kill -TERM "$server"
wait "$server" || true
nothing_left
say 'more failures than it bears are EIO, and the server ends'

# --- a RAID 1 and others, at once

serve /dev/ublkb7 --ublk=7 --ublk-depth 8 m n
raid1=$server
refused "a device 7 already, served by process $raid1" raidlab serve --ublk=7 --memory 1M
raidlab serve --ublk --memory 32M 2>>"$log" &
memory=$!
raidlab serve --ublk=3 --model wd4000fyyz 2>>"$log" &
model=$!
until [[ -b /dev/ublkb0 && -b /dev/ublkb3 ]]; do
    kill -0 "$memory" || fail 'no memory'
    kill -0 "$model" || fail 'no modelled disk'
    sleep 0.1
done
[[ $(</sys/block/ublkb3/queue/rotational) == 1 ]] || fail 'it does not rotate'
dd if=/dev/ublkb3 of=/dev/null bs=4k count=16 skip=100000 iflag=direct status=none
verify 16 --rate=4m &
verifying=$!
sleep 1
raidlab manage "$control" --fail m --remove m --re-add m
wait "$verifying" || fail 'fio found differences'
mended '[UU]'
(device=/dev/ublkb0 && verify 16)
kill -TERM "$memory" "$model"
wait "$memory" "$model"
raidlab stop "$control"
server=$raid1
ended
for member in m n; do
    raidlab examine "$member" >/dev/null
done
say 'RAID 1: fio verifies while a member fails and is re-added; memory and a modelled disk'

[[ -z $(dmesg | grep -i 'BUG:\|WARNING:\|hung task' || true) ]] || fail 'the kernel complains'
say 'the kernel has nothing to complain of'
