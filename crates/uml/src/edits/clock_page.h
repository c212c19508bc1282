/*
 * The virtual time, in a page that every program has below its vDSO. A program may move
 * it by what reading the clock costs, before the next event; the kernel takes it from
 * there when the program stops.
 */
struct raidlab_clock {
	unsigned long long now;
	/* Before it the time may be moved; 0: not at all. */
	unsigned long long until;
	unsigned long long clock_cost, call_cost;
	/* What the timekeeper had at its last update. */
	unsigned long long cycles, shifted_nanoseconds;
	unsigned int mult, shift;
	int touched;
	/* By CLOCK_REALTIME and CLOCK_MONOTONIC. */
	long long seconds[2], nanoseconds[2];
};

