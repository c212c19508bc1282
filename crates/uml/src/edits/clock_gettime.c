	if (raidlab_read_clock(clock, (long *)&ts->tv_sec, (long *)&ts->tv_nsec))
		return 0;

	asm("syscall"
		: "=a" (ret)
		: "0" (__NR_clock_gettime), "D" (clock), "S" (ts)
