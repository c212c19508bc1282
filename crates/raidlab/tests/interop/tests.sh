# What a level and layout is put through. Each test is named by who did the
# work; the other system has the last word.

written_by_raidlab() {
    local bitmap=()
    case $level in
    1 | 10) bitmap=(--bitmap internal --bitmap-chunk 64) ;;
    esac
    raidlab_creates "${bitmap[@]}"
    raidlab_starts "${member[@]}"
    image
    # While the first resync runs.
    raidlab_writes "$room/image"
    raidlab_settles
    raidlab_stops
    mdadm_examines "${member[@]}"
    kernel_starts "${member[@]}"
    kernel_has_nothing_to_do
    kernel_reads_the_same
    kernel_checks
    kernel_stops
}

written_by_kernel() {
    local bitmap=() how=()
    case $level-$version in
    *-0.90) how=(--readonly) ;;
    5-* | 6-*) bitmap=(--bitmap internal) ;;
    esac
    kernel_creates "${bitmap[@]}"
    image
    kernel_writes "$room/image"
    kernel_settles
    kernel_stops
    raidlab_starts "${how[@]}" "${member[@]}"
    raidlab_reads_the_same
    if [[ $level != 0 && $level != linear && $version != 0.90 ]]; then
        raidlab_settles
        raidlab_checks
    fi
    raidlab_stops
    kernel_starts "${member[@]}"
    kernel_has_nothing_to_do
    kernel_reads_the_same
    kernel_stops
}

# The kernel loses a member and goes on; raidlab fills a new one.
recovered_by_raidlab() {
    kernel_creates --bitmap internal
    image
    kernel_writes "$room/image"
    kernel_settles
    mdadm --fail "$md" "${member[1]}"
    mdadm --remove "$md" "${member[1]}"
    image 7
    kernel_writes "$room/image"
    kernel_stops
    local left=("${member[0]}" "${member[@]:2}")
    raidlab_starts --run "${left[@]}"
    raidlab_reads_the_same
    raidlab manage "$array" --add "$new"
    raidlab_settles
    raidlab_reads_the_same
    raidlab_checks
    raidlab_stops
    mdadm_examines "${left[@]}" "$new"
    kernel_starts "${left[@]}" "$new"
    kernel_has_nothing_to_do
    kernel_reads_the_same
    kernel_checks
    kernel_stops
}

# raidlab loses a member and goes on; the kernel fills a new one.
recovered_by_kernel() {
    raidlab_creates --bitmap internal
    raidlab_starts "${member[@]}"
    image
    raidlab_writes "$room/image"
    raidlab_settles
    raidlab manage "$array" --fail "${member[1]}"
    raidlab manage "$array" --remove "${member[1]}"
    image 7
    raidlab_writes "$room/image"
    raidlab_stops
    local left=("${member[0]}" "${member[@]:2}")
    kernel_starts "${left[@]}"
    kernel_reads_the_same
    mdadm --add "$md" "$new"
    kernel_settles
    kernel_reads_the_same
    kernel_checks
    kernel_stops
    raidlab_starts "${left[@]}" "$new"
    raidlab_settles
    raidlab_reads_the_same
    raidlab_checks
    raidlab_stops
    mdadm_examines "${left[@]}" "$new"
}

# What a recovery wrote to the member that came back: less than a third of it,
# or it was not the bitmap that led it.
was_partial() {
    local written=$1
    note="wrote $((written / 2)) of $used KiB"
    echo "$note" >"$room/note"
    ((written < used * 2 / 3)) || fail "not partial: $note"
    ((written > 0)) || fail 'nothing was copied'
}

# The kernel loses a member and goes on; raidlab takes it back by the bitmap.
re_added_by_raidlab() {
    kernel_creates --bitmap internal --bitmap-chunk 64 --delay 1
    image
    kernel_writes "$room/image"
    kernel_settles
    kernel_forgets_writes
    mdadm --fail "$md" "${member[1]}"
    mdadm --remove "$md" "${member[1]}"
    other_bytes 3
    dd if="$room/patch" of="$md" bs=1M seek=3 oflag=direct conv=notrunc,fsync status=none
    kernel_stops
    local left=("${member[0]}" "${member[@]:2}") before
    raidlab_starts --run "${left[@]}"
    before=$(sectors_written "${member[1]}")
    raidlab manage "$array" --re-add "${member[1]}"
    raidlab_settles
    was_partial $(($(sectors_written "${member[1]}") - before))
    raidlab_reads_the_same
    raidlab_checks
    raidlab_stops
    mdadm_examines "${member[@]}"
    kernel_starts "${member[@]}"
    kernel_has_nothing_to_do
    kernel_reads_the_same
    kernel_checks
    kernel_stops
}

# raidlab loses a member and goes on; the kernel takes it back by the bitmap.
re_added_by_kernel() {
    raidlab_creates --bitmap internal --bitmap-chunk 64
    raidlab_starts "${member[@]}"
    image
    raidlab_writes "$room/image"
    raidlab_settles
    raidlab_forgets_writes
    raidlab manage "$array" --fail "${member[1]}"
    raidlab manage "$array" --remove "${member[1]}"
    other_bytes 3
    qemu-io -f raw "$uri" -c "write -s $room/patch 3M 1M" -c flush
    raidlab_reads_the_same
    raidlab_stops
    local left=("${member[0]}" "${member[@]:2}") before
    kernel_starts "${left[@]}"
    before=$(sectors_written "${member[1]}")
    mdadm --re-add "$md" "${member[1]}"
    kernel_settles
    was_partial $(($(sectors_written "${member[1]}") - before))
    kernel_reads_the_same
    kernel_checks
    kernel_stops
    raidlab_starts "${member[@]}"
    raidlab_settles
    raidlab_reads_the_same
    raidlab_checks
    raidlab_stops
    mdadm_examines "${member[@]}"
}

# raidlab dies in mid-write, its log on; the kernel takes the array over.
crashed_under_raidlab() {
    local bitmap=()
    case $level in
    1 | 10) bitmap=(--bitmap internal --bitmap-chunk 64) ;;
    esac
    raidlab_creates "${bitmap[@]}"
    raidlab_starts_to_die "${member[@]}"
    raidlab_settles
    raidlab_dies_in_mid_write 1
    kernel_starts "${member[@]}"
    kernel_settles
    kernel_holds_what_it_must
    kernel_checks
    kernel_stops
    # What the log says is old by now.
    raidlab_starts "${member[@]}"
    raidlab_settles
    crash_writer verify "$uri" "$room/writes"
    raidlab_checks
    raidlab_stops
}

raidlab_dies_in_mid_write() {
    crash_writer fill "$uri" "$room/writes"
    crash_writer write "$uri" "$room/writes" "$RANDOM" 60 &
    local writer=$!
    for _ in {1..15}; do nap; done
    raidlab_is_killed
    wait "$writer"
}

kernel_holds_what_it_must() {
    blockdev --flushbufs "$md"
    crash_writer verify "$md" "$room/writes"
}

# A degraded array dies: only the log knows what parity was. The kernel refuses
# it, raidlab makes it good, and then the kernel takes it.
crashed_degraded_raidlab() {
    raidlab_creates
    raidlab_starts_to_die "${member[@]}"
    raidlab_settles
    raidlab manage "$array" --fail "${member[1]}"
    raidlab manage "$array" --remove "${member[1]}"
    local left=("${member[0]}" "${member[@]:2}")
    raidlab_dies_in_mid_write
    if mdadm --assemble "$md" --run "${left[@]}"; then
        fail 'the kernel starts a dirty degraded array'
    fi
    mdadm --stop "$md" || true
    raidlab_starts "${left[@]}"
    crash_writer verify "$uri" "$room/writes"
    raidlab_stops
    kernel_starts "${left[@]}"
    kernel_holds_what_it_must
    mdadm --add "$md" "$new"
    kernel_settles
    kernel_holds_what_it_must
    kernel_checks
    kernel_stops
}

# The kernel's members as they are at a moment in mid-write, all of them held
# before the first is copied; raidlab takes the copies.
crashed_under_kernel() {
    cut_members 24 24 24 24 24
    kernel_creates --bitmap internal
    kernel_settles
    # The writer speaks NBD: a server that hands its requests to the kernel.
    raidlab serve --name "$array" --unix "$socket" --file "$md" 2>"$room/served" &
    echo $! >"$room/server"
    until [[ -S $socket ]]; do nap; done
    crash_writer fill "$uri" "$room/writes"
    crash_writer write "$uri" "$room/writes" "$RANDOM" 60 &
    local writer=$! index copies=()
    for _ in {1..15}; do nap; done
    for index in "${!member[@]}"; do
        dmsetup suspend --noflush --nolockfs "$array.$index"
    done
    for index in "${!member[@]}"; do
        copies+=("$room/snapshot.$index")
        dd if="${disks[index]}" of="$room/snapshot.$index" bs=1M count=24 iflag=direct status=none
    done
    # What is acknowledged from here on would not be in the copies.
    kill -9 "$(<"$room/server")"
    for index in "${!member[@]}"; do
        dmsetup resume "$array.$index"
    done
    raidlab_is_killed
    wait "$writer"
    kernel_stops
    raidlab_starts "${copies[@]}"
    raidlab_settles
    crash_writer verify "$uri" "$room/writes"
    raidlab_checks
    raidlab_stops
}

# What both halves of a nested array are: mirrors of two, RAID 5 of three.
halves() {
    half=$((members / 2))
    first=("${member[@]:0:half}")
    second=("${member[@]:half:half}")
    nested=('[' "${first[@]}" ']' '[' "${second[@]}" ']')
    below=(--level 1)
    ((half == 2)) || below=(--level 5 --chunk 64)
    below+=(--raid-devices "$half" --size "$used")
    above=(--level "$level" --raid-devices 2)
    ((level == 1)) || above+=(--chunk 64)
}

nested_by_raidlab() {
    halves
    raidlab create --run "${below[@]}" --name left "${first[@]}"
    raidlab create --run "${below[@]}" --name right "${second[@]}"
    raidlab create --run "${above[@]}" --name "$array" "${nested[@]}"
    raidlab_starts "${nested[@]}"
    image
    raidlab_writes "$room/image"
    local one
    for one in "$array" "$array.left" "$array.right"; do
        raidlab wait "$one" --seconds "$patience"
    done
    raidlab_stops
    mdadm_examines "${first[@]}"
    mdadm_examines "${second[@]}"
    mdadm --assemble "${inner[0]}" --run "${first[@]}"
    mdadm --assemble "${inner[1]}" --run "${second[@]}"
    mdadm_examines "${inner[@]}"
    kernel_starts "${inner[@]}"
    kernel_has_nothing_to_do
    kernel_reads_the_same
    kernel_checks
    kernel_stops
    mdadm --stop "${inner[@]}"
}

nested_by_kernel() {
    halves
    mdadm --create "${inner[0]}" --run --force "${below[@]}" --name left "${first[@]}"
    mdadm --create "${inner[1]}" --run --force "${below[@]}" --name right "${second[@]}"
    mdadm --create "$md" --run --force "${above[@]}" --name "$array" "${inner[@]}"
    size=$(blockdev --getsize64 "$md")
    image
    kernel_writes "$room/image"
    # It says 1 when there is nothing to wait for.
    mdadm --wait "${inner[@]}" || true
    kernel_stops
    mdadm --stop "${inner[@]}"
    raidlab_starts "${nested[@]}"
    raidlab_reads_the_same
    raidlab_stops
}

# A member whose bad-block log names a range leaves, gets other bytes there, and comes back when
# the bitmap says that it lacks nothing: the kernel on the members, raidlab on copies of
# them as they were then. Both must read the other copy; a repair gives the range its
# bytes, and takes it off the log.
bad_blocks_return() {
    local copies=("$room/snapshot.0" "$room/snapshot.1") index name=${member[1]##*/}
    kernel_creates --bitmap internal --bitmap-chunk 64 --delay 1
    image
    kernel_writes "$room/image"
    kernel_settles
    # 64 KiB, 2 MiB into the data. The log goes out with the next superblocks.
    local offset
    read -r offset <"$md_state/dev-$name/offset"
    echo "$((offset + 4096)) 128" >"$md_state/dev-$name/bad_blocks"
    kernel_writes_place 5
    kernel_forgets_writes
    mdadm --fail "$md" "${member[1]}"
    mdadm --remove "$md" "${member[1]}"
    kernel_stops
    dd if=/dev/shm/noise of="${member[1]}" bs=512 skip=100 seek=$((offset + 4096)) count=128 \
        oflag=direct conv=notrunc status=none
    for index in 0 1; do
        dd if="${member[index]}" of="${copies[index]}" bs=1M iflag=direct status=none
    done

    kernel_starts "${member[0]}"
    mdadm --re-add "$md" "${member[1]}"
    kernel_settles
    kernel_reads_the_same
    local by_kernel
    by_kernel="$(kernel_bad_sectors) bad"
    kernel_repairs
    by_kernel+=", after a repair $(kernel_bad_sectors), $(kernel_mismatches) differ"
    kernel_stops

    raidlab_starts --run "${copies[0]}"
    raidlab manage "$array" --re-add "${copies[1]}"
    raidlab_settles
    raidlab_reads_the_same
    local by_raidlab
    by_raidlab="$(raidlab_bad_sectors) bad"
    raidlab manage "$array" --action repair
    raidlab wait "$array" --seconds "$patience"
    raidlab_reads_the_same
    raidlab manage "$array" --action check
    raidlab wait "$array" --seconds "$patience"
    by_raidlab+=", after a repair $(raidlab_bad_sectors), $(raidlab_says mismatch_sectors) differ"
    raidlab manage "$array" --fail "${copies[0]}"
    raidlab_reads_the_same
    raidlab_stops
    # Linux 6.1 takes the range off the log, and what its repair has written there is
    # not what the other member has.
    side_by_side "$by_kernel" "$by_raidlab" '128 bad, after a repair 0, 0 differ' \
        '128 bad, after a repair 0, * differ'
}

# A new array loses a member in its first resync, is written to and read, and a new
# member is filled: by the kernel, and then by raidlab, on the same disks. What has
# been written is there, nothing is refused, and all agrees at the end.
lost_in_first_resync() {
    local left by_kernel by_raidlab refused=0 mib
    kernel_creates --readonly
    echo 50 >"$md_state/sync_speed_min"
    echo 100 >"$md_state/sync_speed_max"
    mdadm --readwrite "$md"
    image
    for mib in 2 11; do kernel_writes_place "$mib" || refused=$((refused + 1)); done
    [[ $(<"$md_state/sync_action") == resync ]] || fail 'the first resync is over'
    mdadm --fail "$md" "${member[1]}"
    mdadm --remove "$md" "${member[1]}"
    for mib in 5 9 17; do kernel_writes_place "$mib" || refused=$((refused + 1)); done
    kernel_reads_places 2 11 5 9 17 || refused=$((refused + 1))
    echo system >"$md_state/sync_speed_min"
    echo system >"$md_state/sync_speed_max"
    mdadm --add "$md" "$new"
    kernel_settles
    kernel_reads_places 2 11 5 9 17 || refused=$((refused + 1))
    kernel_checks
    by_kernel="$refused refused, $(kernel_bad_sectors) bad sectors"
    kernel_stops
    clear_away
    prepare

    refused=0
    # So slow that the resync is not over before its speed is set.
    delay_members 100
    raidlab_creates
    raidlab_starts "${member[@]}"
    raidlab manage "$array" --sync-speed 50 100
    delay_members 0
    raidlab detail "$array" | grep -q 'resync' || fail 'the first resync is over'
    image
    for mib in 2 11; do raidlab_writes_place "$mib" || refused=$((refused + 1)); done
    raidlab manage "$array" --fail "${member[1]}"
    raidlab manage "$array" --remove "${member[1]}"
    for mib in 5 9 17; do raidlab_writes_place "$mib" || refused=$((refused + 1)); done
    raidlab_reads_places 2 11 5 9 17 || refused=$((refused + 1))
    raidlab manage "$array" --sync-speed 1000 200000
    raidlab manage "$array" --add "$new"
    raidlab_settles
    raidlab_reads_places 2 11 5 9 17 || refused=$((refused + 1))
    raidlab_checks
    by_raidlab="$refused refused, $(raidlab_bad_sectors) bad sectors"
    raidlab_stops
    left=("${member[0]}" "${member[@]:2}")
    mdadm_examines "${left[@]}" "$new"
    kernel_starts "${left[@]}" "$new"
    kernel_has_nothing_to_do
    kernel_reads_places 2 11 5 9 17
    kernel_checks
    kernel_stops
    side_by_side "$by_kernel" "$by_raidlab" '0 refused, 0 bad sectors'
}
