/*
 * A device that interrupts while its interrupt is on its way already gives the guest nothing
 * to run for: it waits on. True if it has to wait again.
 */
static bool raidlab_waits_on(unsigned long long ns)
{
	struct time_travel_event *first =
		list_first_entry_or_null(&time_travel_events, struct time_travel_event, list);

	if (time_travel_time >= ns || !first || first->time <= time_travel_time)
		return false;
	if (time_travel_ext_request(ns))
		return true;
	time_travel_set_time(ns);
	return false;
}

static void __time_travel_update_time(unsigned long long ns, bool idle)
{
