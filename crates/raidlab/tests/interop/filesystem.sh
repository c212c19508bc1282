#!/usr/bin/env bash
# In a guest: two file systems on the first disk, which the host exports.
#
#   filesystem.sh fill       makes them, fills them, checks and compares them
#   filesystem.sh compare    checks and compares what an earlier guest left
#
# Lines that begin with `at:` tell the host how far it is.
set -eEuo pipefail
trap 'echo "failed: $BASH_COMMAND"; dmesg | tail -n 40' ERR

kinds=(ext4 xfs)
# Trees of files for each: programs and libraries of the guest, and noise.
rounds=3

disk=$(readlink -f /dev/disk/by-id/*EXPORT0 2>/dev/null || echo /dev/sda)
# A machine that is busy is no failure; an array that hangs meets the guest's limit.
echo 600 >"/sys/block/${disk##*/}/device/timeout"
half=$(($(blockdev --getsz "$disk") / 2))
export DM_DISABLE_UDEV=1
for index in 0 1; do
    echo "0 $half linear $disk $((index * half))" | dmsetup create "${kinds[index]}"
    mkdir -p "/mnt/${kinds[index]}"
done

make() {
    mkfs.ext4 -q -F /dev/mapper/ext4
    # Smaller than mkfs.xfs likes nowadays.
    mkfs.xfs -q -f /dev/mapper/xfs || mkfs.xfs -q -f --unsupported /dev/mapper/xfs
}

mount_all() {
    local kind
    for kind in "${kinds[@]}"; do
        mount -t "$kind" "/dev/mapper/$kind" "/mnt/$kind"
    done
}

unmount_all() {
    local kind
    for kind in "${kinds[@]}"; do
        umount "/mnt/$kind"
    done
}

# Many small files and some large ones, some written twice, some gone again.
fill_one() {
    local folder=/mnt/$1/$2 number
    mkdir "$folder"
    cp -r /usr/sbin "$folder/"
    for number in {1..150}; do
        dd if=/dev/urandom of="$folder/noise.$number" bs=1k count=$((1 + RANDOM % 200)) \
            status=none
    done
    for number in {1..150..3}; do
        rm "$folder/noise.$number"
    done
    for number in {2..150..5}; do
        [[ ! -f $folder/noise.$number ]] ||
            dd if=/dev/urandom of="$folder/noise.$number" bs=1k seek=$((RANDOM % 50)) count=20 \
                conv=notrunc,fsync status=none
    done
}

sums() {
    (cd "/mnt/$1" && find . -type f ! -name sums -print0 | xargs -0 md5sum | sort -k 2)
}

fsck() {
    e2fsck -f -n /dev/mapper/ext4
    xfs_repair -n /dev/mapper/xfs
}

compare() {
    local kind
    fsck >/run/fsck 2>&1 || {
        cat /run/fsck
        return 1
    }
    echo "at: fsck finds nothing"
    mount_all
    for kind in "${kinds[@]}"; do
        sums "$kind" | cmp - "/mnt/$kind/sums"
        echo "at: $kind holds $(wc -l <"/mnt/$kind/sums") files," \
            "$(du -sm "/mnt/$kind" | cut -f1) MiB, all equal"
    done
    unmount_all
}

if [[ $1 == fill ]]; then
    make
    mount_all
    for ((round = 0; round < rounds; round++)); do
        echo "at: round $round"
        for kind in "${kinds[@]}"; do
            fill_one "$kind" "$round"
        done
        sync
    done
    for kind in "${kinds[@]}"; do
        sums "$kind" >"/mnt/$kind/sums"
    done
    unmount_all
    echo 'at: unmounted'
fi
compare
