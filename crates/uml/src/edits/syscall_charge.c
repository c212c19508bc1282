	if (raidlab_syscall_cost && time_travel_mode == TT_MODE_EXTERNAL)
		time_travel_ndelay(raidlab_syscall_cost);

out:
	syscall_trace_leave(regs);
