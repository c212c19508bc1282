#include <asm/unistd.h>

static inline int raidlab_read_clock(unsigned int clock, long *seconds, long *nanoseconds)
{
	struct raidlab_clock *page;
	unsigned long long read, after, cycles, ns;

	/* The page before this one. */
	asm("lea 0(%%rip), %0" : "=r" (page));
	page = (void *)(((unsigned long)page & ~4095UL) - 4096);
	if (clock > 1)
		return 0;
	/* A fault may let time pass: none comes between the reading and the moving. */
	*(volatile int *)&page->touched = 1;
	read = page->now + page->clock_cost;
	after = read + page->call_cost;
	cycles = read / 256 - page->cycles;
	if (after >= page->until || cycles >> 31)
		return 0;
	page->now = after;
	ns = ((cycles * page->mult + page->shifted_nanoseconds) >> page->shift) +
		page->nanoseconds[clock];
	*seconds = page->seconds[clock];
	while (ns >= 1000000000) {
		ns -= 1000000000;
		++*seconds;
		/* Or the compiler makes a division of it, of another object. */
		asm("" : "+r" (ns));
	}
	*nanoseconds = ns;
	return 1;
}

