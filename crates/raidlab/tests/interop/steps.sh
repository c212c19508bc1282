# Steps that tests are made of: what raidlab does, what the kernel does, what
# is compared. Each fails loudly, so that a test is a plain list of steps.

# Seconds until something counts as stuck.
patience=120
# What is used of each member, in KiB: small, as every byte is copied and
# checked several times by a processor that QEMU imitates.
used=$USED

fail() {
    echo "failed: $*"
    show_state
    exit 1
}

# A moment, without a process.
nap() {
    read -rt 0.1 <>"$room/never" || true
}

# Both systems' view of things, for the reader of a failure.
show_state() {
    set +eE
    trap - ERR
    cat /proc/mdstat
    raidlab detail "$array" 2>/dev/null
    cat "/run/raidlab/$array.log.sock" 2>/dev/null
    dmesg | tail -n 15
}

# Nothing of the case before is running or mapped. What is not there costs no process: each
# takes seconds here.
clear_away() {
    trap - ERR
    if [[ -f $room/server ]]; then
        kill -9 "$(<"$room/server")" 2>/dev/null || true
        rm -f "$room/server"
    fi
    if [[ -S /run/raidlab/$array.sock ]]; then
        raidlab stop "$array" 2>/dev/null || true
    fi
    local one
    for one in "$md" "${inner[@]}"; do
        [[ ! -e /sys/block/${one##*/}/md ]] || mdadm --stop "$one" 2>/dev/null || true
    done
    for one in "/dev/mapper/$array".*; do
        [[ ! -e $one ]] || dmsetup remove "${one##*/}" 2>/dev/null || true
    done
    rm -rf "${room:?}"/{image,copy,writes,never,snapshot.*}
    trap 'echo "failed: line $LINENO of ${BASH_SOURCE[0]##*/}: $BASH_COMMAND"; show_state' ERR
}

# Nothing of the case before is recognisable: no superblock of any version is left. Its data
# stay, so that a forgotten sync shows.
wipe() {
    local disk sectors
    head -c 64k /dev/zero | tee "${disks[@]}" >/dev/null
    for disk in "${disks[@]}"; do
        read -r sectors <"/sys/block/${disk##*/}/size"
        dd if=/dev/zero of="$disk" bs=64k seek=$((sectors / 128 - 4)) count=4 conv=notrunc status=none
    done
}

# The members of this case and one that may join later.
prepare() {
    wipe
    mkfifo "$room/never"
    member=("${disks[@]:0:members}")
    new=${disks[members]:-}
    size_of_member=(--size "$used")
    shape=(--chunk 64)
    case $what:$level in
    # The members of its members have a size.
    nested*) ;;
    *:0 | *:linear)
        # They take all of a member.
        size_of_member=()
        if [[ $layout == *unequal ]]; then
            cut_members 12 16 16 20
        else
            cut_members 12 12 12 12
        fi
        ;;
    esac
    case $level in
    1 | linear) shape=() ;;
    esac
    layout_words=()
    if [[ ${layout%%:*} != [-u]* ]]; then
        layout_words=(--layout "${layout%%:*}")
    fi
}

# All members answer after so many milliseconds; with 0, at once.
delay_members() {
    local index table
    for index in "${!member[@]}"; do
        table="0 $((24 * 2048)) delay ${disks[index]} 0 $1"
        if [[ -e /dev/mapper/$array.$index ]]; then
            dmsetup load "$array.$index" --table "$table"
            dmsetup resume "$array.$index"
        else
            dmsetup create "$array.$index" --table "$table"
        fi
        member[index]=/dev/mapper/$array.$index
    done
}

# Members of so many MiB in place of whole disks.
cut_members() {
    local index
    for index in "${!member[@]}"; do
        shift "$((index > 0))"
        echo "0 $(($1 * 2048)) linear ${member[index]} 0" |
            dmsetup create "$array.$index"
        member[index]=/dev/mapper/$array.$index
    done
}

# --- raidlab

socket=/run/raidlab/$array.nbd.sock
uri="nbd+unix:///$array?socket=$socket"

raidlab_creates() {
    raidlab create --run --level "$level" --raid-devices "$members" --metadata "$version" \
        --name "$array" "${shape[@]}" "${size_of_member[@]}" "${layout_words[@]}" "$@" "${member[@]}"
}

# Assembled from devices, served in the background.
raidlab_starts() {
    raidlab assemble "$array" "$@"
    local said
    said=$(raidlab_says size_bytes state health)
    size=${said%% *}
    echo "raidlab: $said"
}

# Like it, in a process whose number is known.
raidlab_starts_to_die() {
    raidlab serve --name "$array" "$@" 2>"$room/served" &
    echo $! >"$room/server"
    local end=$((SECONDS + patience))
    until [[ -S /run/raidlab/$array.sock ]] && raidlab detail "$array" >/dev/null 2>&1; do
        kill -0 "$(<"$room/server")" || fail "the server ended: $(<"$room/served")"
        ((SECONDS < end)) || fail 'the server does not start'
        nap
    done
    size=$(raidlab_says size_bytes)
}

raidlab_is_killed() {
    kill -9 "$(<"$room/server")" 2>/dev/null || true
    wait "$(<"$room/server")" || true
    rm -f "$room/server"
}

# Values of its state, at one moment.
raidlab_says() {
    local json name said=()
    json=$(raidlab detail --json "$array")
    for name; do
        [[ $json =~ \"$name\":(\"([^\"]*)\"|([0-9a-z]+)) ]] || fail "no $name in $json"
        said+=("${BASH_REMATCH[2]}${BASH_REMATCH[3]}")
    done
    echo "${said[*]}"
}

# Until all slots are in sync, or those that are told, and nothing runs.
raidlab_settles() {
    local health end=$((SECONDS + patience)) wanted=${1:-}
    if [[ -z $wanted ]]; then
        printf -v wanted '%*s' "$members" ''
        wanted="[${wanted// /U}]"
    fi
    while :; do
        raidlab wait "$array" --seconds "$patience"
        health=$(raidlab_says health)
        [[ $health != "$wanted" ]] || return 0
        ((SECONDS < end)) || fail "raidlab stays at $health, not $wanted"
        nap
    done
}

# Until the bitmap says that nothing was written lately.
raidlab_forgets_writes() {
    local end=$((SECONDS + patience))
    until raidlab detail --json "$array" | grep -q '"bitmap_chunks":\[0,'; do
        ((SECONDS < end)) || fail "bits stay in raidlab's bitmap"
        nap
    done
}

raidlab_checks() {
    raidlab manage "$array" --action check
    raidlab wait "$array" --seconds "$patience"
    local found
    found=$(raidlab_says mismatch_sectors)
    ((found == 0)) || fail "raidlab counts $found sectors of mismatches"
}

raidlab_writes() {
    nbdcopy --flush "$1" "$uri"
}

raidlab_reads_the_same() {
    nbdcopy "$uri" "$room/copy"
    cmp "$room/copy" "$room/image" || fail 'raidlab reads something else'
    rm -f "$room/copy"
}

# Sectors that the members' bad-block logs name.
raidlab_bad_sectors() {
    local json one sum=0
    json=$(raidlab detail --json "$array")
    for one in $(grep -o '"bad_sectors":[0-9]*' <<<"$json"); do
        sum=$((sum + ${one##*:}))
    done
    echo "$sum"
}

# A MiB of the image goes to its place, in pieces of 4 and of 60 KiB.
raidlab_writes_place() {
    dd if="$room/image" of="$room/patch" bs=1M skip="$1" count=1 status=none
    local at=$(($1 * 1024)) piece commands=()
    for ((piece = 0; piece < 1024; piece += 64)); do
        dd if="$room/patch" of="$room/patch.$piece" bs=1k skip="$piece" count=4 status=none
        dd if="$room/patch" of="$room/patch.$piece.long" bs=1k skip=$((piece + 4)) count=60 status=none
        commands+=(-c "write -s $room/patch.$piece $((at + piece))k 4k")
        commands+=(-c "write -s $room/patch.$piece.long $((at + piece + 4))k 60k")
    done
    local said
    said=$(qemu-io -f raw "$uri" "${commands[@]}" -c flush 2>&1)
    rm -f "$room"/patch*
    [[ $(grep -c '^wrote' <<<"$said") == 32 ]]
}

# Every byte can be read, and these MiB are those of the image.
raidlab_reads_places() {
    nbdcopy "$uri" "$room/copy" || return
    are_places_the_same "$room/copy" "$@"
}

raidlab_stops() {
    raidlab stop "$array"
}

# --- the kernel

kernel_creates() {
    mdadm --create "$md" --run --force --level "$level" --raid-devices "$members" \
        --metadata "$version" --homehost=any --name "$array" "${shape[@]}" "${size_of_member[@]}" \
        "${layout_words[@]}" "$@" "${member[@]}"
    size=$(blockdev --getsize64 "$md")
}

kernel_starts() {
    mdadm --assemble "$md" --run "$@"
    local found
    found=$(blockdev --getsize64 "$md")
    [[ -z ${size:-} ]] || ((found == size)) || fail "the kernel has $found bytes, not $size"
    size=$found
}

# Until nothing is missing, or as many members as told, and nothing runs.
kernel_settles() {
    [[ -f $md_state/sync_action ]] || return 0
    local action start degraded end=$((SECONDS + patience))
    while :; do
        read -r action <"$md_state/sync_action"
        read -r start <"$md_state/resync_start"
        read -r degraded <"$md_state/degraded"
        if [[ $action == idle && $start == none && $degraded == "${1:-0}" ]]; then
            return
        fi
        ((SECONDS < end)) || fail "the kernel stays at $action, from $start, $degraded missing"
        nap
    done
}

# It was stopped cleanly by the other: nothing to do.
kernel_has_nothing_to_do() {
    [[ -f $md_state/sync_action ]] || return 0
    local action degraded
    read -r action <"$md_state/sync_action"
    read -r degraded <"$md_state/degraded"
    [[ $action == idle && $degraded == "${1:-0}" ]] ||
        fail "the kernel begins with $action, $degraded missing"
}

# Like raidlab_forgets_writes, by what stands on the first member.
kernel_forgets_writes() {
    local end=$((SECONDS + patience))
    until mdadm --examine-bitmap "${member[0]}" | grep -q ' 0 dirty'; do
        ((SECONDS < end)) || fail "bits stay in the kernel's bitmap"
        nap
    done
}

# What a check counts, in sectors.
kernel_mismatches() {
    echo check >"$md_state/sync_action"
    local action found
    while read -r action <"$md_state/sync_action" && [[ $action != idle ]]; do
        nap
    done
    read -r found <"$md_state/mismatch_cnt"
    echo "$found"
}

kernel_checks() {
    [[ -f $md_state/sync_action ]] || return 0
    local found
    found=$(kernel_mismatches)
    ((found == 0)) || fail "the kernel counts $found sectors of mismatches"
}

kernel_writes() {
    dd if="$1" of="$md" bs=1M oflag=direct conv=notrunc,fsync status=none
}

kernel_reads_the_same() {
    blockdev --flushbufs "$md"
    cmp "$md" "$room/image" || fail 'the kernel reads something else'
}

kernel_repairs() {
    echo repair >"$md_state/sync_action"
    kernel_settles
}

kernel_bad_sectors() {
    cat "$md_state"/dev-*/bad_blocks | awk '{ sum += $2 } END { print sum + 0 }'
}

kernel_writes_place() {
    local at=$(($1 * 1024)) piece
    for ((piece = 0; piece < 1024; piece += 64)); do
        dd if="$room/image" of="$md" bs=4k skip=$(((at + piece) / 4)) seek=$(((at + piece) / 4)) \
            count=1 oflag=direct conv=notrunc,fsync status=none || return
        dd if="$room/image" of="$md" bs=4k skip=$(((at + piece) / 4 + 1)) \
            seek=$(((at + piece) / 4 + 1)) count=15 oflag=direct conv=notrunc,fsync status=none || return
    done
}

kernel_reads_places() {
    blockdev --flushbufs "$md"
    dd if="$md" of="$room/copy" bs=1M iflag=direct status=none || return
    are_places_the_same "$room/copy" "$@"
}

kernel_stops() {
    mdadm --stop "$md"
}

# --- both

# mdadm reads what is on the members without a word of complaint.
mdadm_examines() {
    local one words events=() line=$'[^\n]*'
    for one in "$@"; do
        words=$(mdadm --examine "$one" 2>"$room/complaints")
        [[ ! -s $room/complaints ]] || fail "mdadm --examine: $(<"$room/complaints")"
        [[ $words =~ "Checksum : "$line" - correct" ]] || fail "$words"
        [[ $words =~ "State : clean" ]] || fail "$words"
        [[ $words =~ "Events : "($line) ]] || fail "$words"
        events+=("${BASH_REMATCH[1]}")
        if [[ $words =~ "Internal Bitmap" ]]; then
            words=$(mdadm --examine-bitmap "$one" 2>"$room/complaints")
            [[ ! -s $room/complaints ]] || fail "--examine-bitmap: $(<"$room/complaints")"
            [[ $words =~ "Magic : 6d746962" ]] || fail "$words"
            [[ $words =~ "Events : "($line) ]] || fail "$words"
            events+=("${BASH_REMATCH[1]}")
        fi
    done
    for one in "${events[@]}"; do
        [[ $one == "${events[0]}" ]] || fail "events ${events[*]}"
    done
}

# An image as large as the array, beginning at a place of the noise.
image() {
    dd if=/dev/shm/noise of="$room/image" bs=1M iflag=skip_bytes,count_bytes \
        skip=$((${1:-0} << 16)) count="$size" status=none
    local got
    got=$(stat -c %s "$room/image")
    ((got == size)) || fail "too little noise for $size bytes"
}

# Other bytes in a part of the image: MiB number $1, and in the array by the
# command behind it.
other_bytes() {
    dd if=/dev/shm/noise of="$room/patch" bs=1M skip=$((60 - $1)) count=1 status=none
    dd if="$room/patch" of="$room/image" bs=1M seek="$1" conv=notrunc status=none
}

# Whether these MiB of a file are those of the image.
are_places_the_same() {
    local file=$1 mib
    shift
    for mib in "$@"; do
        cmp --ignore-initial $((mib << 20)) --bytes $((1 << 20)) "$file" "$room/image" || return
    done
    rm -f "$file"
}

# What came of the same by the kernel ($1) and by raidlab ($2), and what must come of it
# by raidlab ($3), and by the kernel, if that may differ ($4, a pattern).
side_by_side() {
    echo "md: $1; raidlab: $2" >"$room/note"
    # shellcheck disable=SC2053
    [[ $1 == ${4:-$3} && $2 == "$3" ]] || fail "md: $1; raidlab: $2; not $3"
}

# Sectors written to a device since it was switched on.
sectors_written() {
    local fields
    read -ra fields <"/sys/block/${1##*/}/stat"
    echo "${fields[6]}"
}
