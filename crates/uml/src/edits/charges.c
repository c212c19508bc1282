#define RAIDLAB_FEMTOSECONDS	1000000

static unsigned long raidlab_charges[RAIDLAB_CHARGES];
static bool raidlab_charging;
/*
 * Femtoseconds. Interrupts come where time passes and nowhere else, so that nobody is
 * between reading and writing it when they add to it.
 */
static unsigned long raidlab_owed;

static int __init raidlab_setup_charges(char *text)
{
	int what;

	for (what = 0; what < RAIDLAB_CHARGES; what++) {
		raidlab_charges[what] = simple_strtoul(text, &text, 10);
		if (*text == ',')
			text++;
	}
	raidlab_charging = true;
	return 1;
}
__setup("tt-charges=", raidlab_setup_charges);

void raidlab_owe(enum raidlab_charge what, unsigned long times)
{
	raidlab_owed += raidlab_charges[what] * times;
}

static unsigned long raidlab_take_owed(void)
{
	unsigned long ns = raidlab_owed / RAIDLAB_FEMTOSECONDS;

	raidlab_owed %= RAIDLAB_FEMTOSECONDS;
	return ns;
}

/* What interrupts owe meanwhile is paid by whom they have interrupted. */
void raidlab_pay(void)
{
	unsigned long ns;

	if (!raidlab_charging || irqs_disabled() || in_interrupt() || time_travel_ext_waiting)
		return;
	while ((ns = raidlab_take_owed()))
		time_travel_update_time_rel(ns);
}

void raidlab_charge(enum raidlab_charge what, unsigned long times)
{
	raidlab_owe(what, times);
	raidlab_pay();
}

/* Jiffies are too coarse for the shares of threads where computing takes time. */
unsigned long long raidlab_sched_clock(void)
{
	return raidlab_charging ? time_travel_time : 0;
}

void time_travel_sleep(void)
{
	/* What interrupts owe is paid first; whoever has something to do by then has it. */
	unsigned long owed = raidlab_take_owed();
