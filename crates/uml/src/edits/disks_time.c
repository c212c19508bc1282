/* The devices that interrupt, now that the guest runs. */
static void raidlab_interrupts(void)
{
	u32 number;

	if (!raidlab_shared)
		return;
	for (number = 0; number < raidlab_shared->interrupts; number++)
		time_travel_add_event(raidlab_interrupt(raidlab_shared->interrupting[number]),
				      time_travel_time);
	raidlab_shared->interrupts = 0;
}

/* A kick, at the time that is shared. False where a message has to tell it. */
bool raidlab_kick(u32 device, u16 available)
{
	u32 kicks;

	if (!raidlab_shared || device >= RAIDLAB_DEVICES)
		return false;
	kicks = raidlab_shared->kicks;
	if (kicks >= RAIDLAB_KICKS)
		return false;
	raidlab_shared->kick[kicks].device = device;
	raidlab_shared->kick[kicks].available = available;
	raidlab_shared->kicks = kicks + 1;
	/* Before the time moves, the calendar looks at them. */
	if (time_travel_shm->current_time < time_travel_shm->free_until)
		time_travel_shm->free_until = time_travel_shm->current_time;
	return true;
}

void time_travel_add_event_rel(struct time_travel_event *e,
