static unsigned long raidlab_clock_cost = TIMER_MULTIPLIER;

static int __init raidlab_setup_clock_cost(char *text)
{
	return kstrtoul(text, 0, &raidlab_clock_cost) == 0;
}
__setup("tt-clock-cost=", raidlab_setup_clock_cost);

static u64 timer_read(struct clocksource *cs)
{
