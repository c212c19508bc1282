extern unsigned long raidlab_syscall_cost, raidlab_clock_call_cost;
struct page *raidlab_clock_page;
static struct raidlab_clock *raidlab_clock;
/* The timekeeper reads the virtual time. */
static bool raidlab_virtual;

void raidlab_enter_user(void);
void raidlab_leave_user(void);

/* A program is about to run: it may move the time up to the next event. */
void raidlab_enter_user(void)
{
	struct time_travel_event *first = time_travel_first_event();
	struct raidlab_clock *clock = raidlab_clock;
	unsigned long long until;

	if (!clock)
		return;
	clock->now = time_travel_time;
	clock->until = 0;
	if (!raidlab_virtual || !time_travel_shm)
		return;
	until = *time_travel_ext_free_until - time_travel_shm_offset;
	if (first && first->time < until)
		until = first->time;
	clock->until = until;
}

/* A program has stopped: it is as late as the program has made it. */
void raidlab_leave_user(void)
{
	if (raidlab_clock)
		time_travel_time = raidlab_clock->now;
}

static int raidlab_see_time(struct notifier_block *block, unsigned long was_set, void *from)
{
	struct raidlab_clock *clock = raidlab_clock;
	struct timekeeper *tk = from;

	raidlab_virtual = tk->tkr_mono.clock == &timer_clocksource;
	clock->cycles = tk->tkr_mono.cycle_last;
	clock->shifted_nanoseconds = tk->tkr_mono.xtime_nsec;
	clock->mult = tk->tkr_mono.mult;
	clock->shift = tk->tkr_mono.shift;
	clock->seconds[0] = tk->xtime_sec;
	clock->nanoseconds[0] = 0;
	clock->seconds[1] = tk->xtime_sec + tk->wall_to_monotonic.tv_sec;
	clock->nanoseconds[1] = tk->wall_to_monotonic.tv_nsec;
	return 0;
}

static struct notifier_block raidlab_see_time_block = {
	.notifier_call = raidlab_see_time,
};

static int __init raidlab_make_clock(void)
{
	raidlab_clock_page = alloc_page(GFP_KERNEL | __GFP_ZERO);
	if (!raidlab_clock_page)
		panic("no page for the clock\n");
	raidlab_clock = page_address(raidlab_clock_page);
	raidlab_clock->clock_cost = raidlab_clock_cost;
	raidlab_clock->call_cost = raidlab_clock_call_cost == ULONG_MAX ?
		raidlab_syscall_cost : raidlab_clock_call_cost;
	return pvclock_gtod_register_notifier(&raidlab_see_time_block);
}
subsys_initcall(raidlab_make_clock);

void read_persistent_clock64(struct timespec64 *ts)
{
