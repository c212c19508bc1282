	if (tv && !tz && raidlab_read_clock(0, (long *)&tv->tv_sec, (long *)&tv->tv_usec)) {
		tv->tv_usec /= 1000;
		return 0;
	}

	asm("syscall"
		: "=a" (ret)
		: "0" (__NR_gettimeofday), "D" (tv), "S" (tz)
