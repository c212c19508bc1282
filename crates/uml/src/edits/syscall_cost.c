extern unsigned long raidlab_syscall_cost, raidlab_clock_call_cost;
unsigned long raidlab_syscall_cost;
/* Of a call that reads the clock. */
unsigned long raidlab_clock_call_cost = ULONG_MAX;

static int __init raidlab_setup_syscall_cost(char *text)
{
	return kstrtoul(text, 0, &raidlab_syscall_cost) == 0;
}
__setup("tt-syscall-cost=", raidlab_setup_syscall_cost);

static int __init raidlab_setup_clock_call_cost(char *text)
{
	return kstrtoul(text, 0, &raidlab_clock_call_cost) == 0;
}
__setup("tt-clock-call-cost=", raidlab_setup_clock_call_cost);

static unsigned long raidlab_call_cost(int syscall)
{
	if ((syscall == __NR_clock_gettime || syscall == __NR_gettimeofday) &&
	    raidlab_clock_call_cost != ULONG_MAX)
		return raidlab_clock_call_cost;
	return raidlab_syscall_cost;
}

void handle_syscall(struct uml_pt_regs *r)
{
