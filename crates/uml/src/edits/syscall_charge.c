	if (raidlab_call_cost(syscall) && time_travel_mode == TT_MODE_EXTERNAL)
		time_travel_ndelay(raidlab_call_cost(syscall));

out:
	syscall_trace_leave(regs);
