# The cases, one a line: what is done, level, layout (`-` where there is none),
# members, version of the metadata.

# What a level and layout is put through, both ways.
both_ways() {
    printf '%s %s\n' written_by_raidlab "$*" written_by_kernel "$*"
}

redundant() {
    local level=$1 layout=$2 members=$3 version=$4 what
    for what in recovered_by_raidlab recovered_by_kernel re_added_by_raidlab \
        re_added_by_kernel crashed_under_raidlab crashed_under_kernel; do
        printf '%s %s\n' "$what" "$level $layout $members $version"
    done
}

cases() {
    if [[ $1 == short ]]; then
        # A recovery begins with what the other has written, so each level is read both ways but
        # 1 and 10, whose bytes lie as they were written.
        echo recovered_by_raidlab 6 left-symmetric 5 1.2
        echo recovered_by_kernel 5 left-symmetric 4 1.2
        echo written_by_raidlab 1 - 2 1.2
        echo written_by_kernel 10 n2 4 1.2
        echo written_by_kernel 5 left-symmetric 4 1.2
        echo written_by_raidlab 6 left-symmetric 5 1.2
        return
    fi
    local layout versions=(1.0 1.1 1.2) turn=0
    # The long ones first, so that no worker ends much after the others.
    redundant 1 - 2 1.2
    redundant 5 left-symmetric 4 1.1
    redundant 6 left-symmetric 5 1.2
    redundant 10 n2 4 1.0
    echo recovered_by_raidlab 10 f2 5 1.2
    echo recovered_by_kernel 10 o2 5 1.2
    echo recovered_by_raidlab 6 ddf-N-continue 5 1.0
    echo recovered_by_kernel 6 left-asymmetric-6 5 1.1
    echo crashed_degraded_raidlab 5 left-symmetric 4 1.2
    echo crashed_degraded_raidlab 6 left-symmetric 5 1.2
    # The same by both, side by side.
    echo bad_blocks_return 1 - 2 1.2
    echo lost_in_first_resync 5 left-symmetric 4 1.2
    echo lost_in_first_resync 6 left-symmetric 5 1.2
    # Over two mirrors, and over two RAID 5.
    printf 'nested_by_%s\n' 'raidlab 0 - 4 1.2' 'kernel 0 - 4 1.2' 'raidlab 1 - 4 1.2' \
        'raidlab 0 - 6 1.2' 'kernel 0 - 6 1.2'
    both_ways linear - 3 1.2
    both_ways linear unequal 3 1.0
    both_ways 0 original 4 1.2
    both_ways 0 original:unequal 4 1.1
    both_ways 0 alternate:unequal 4 1.0
    both_ways 1 - 2 1.0
    both_ways 1 - 3 1.1
    both_ways 4 - 4 1.2
    for layout in left-asymmetric right-asymmetric left-symmetric right-symmetric \
        parity-first parity-last; do
        both_ways 5 "$layout" 4 "${versions[turn++ % 3]}"
        both_ways 6 "$layout" 5 "${versions[turn++ % 3]}"
    done
    for layout in ddf-zero-restart ddf-N-restart ddf-N-continue left-asymmetric-6 \
        right-asymmetric-6 left-symmetric-6 right-symmetric-6 parity-first-6; do
        both_ways 6 "$layout" 5 "${versions[turn++ % 3]}"
    done
    for layout in n2 n3 f2 o2; do
        both_ways 10 "$layout" 4 "${versions[turn++ % 3]}"
        both_ways 10 "$layout" 5 "${versions[turn++ % 3]}"
    done
    # Since Linux 5.4 a RAID 0 has to say its layout, for which 0.90 has no place.
    echo written_by_kernel 1 - 2 0.90
    echo written_by_kernel 5 left-symmetric 4 0.90
    echo written_by_kernel 6 left-symmetric 5 0.90
    echo written_by_kernel 10 n2 4 0.90
}
