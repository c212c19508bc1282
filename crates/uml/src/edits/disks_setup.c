	raidlab_shared = (void *)time_travel_shm + RAIDLAB_AT;
	if (raidlab_shared->offered)
		time_travel_shm_client->capa |= RAIDLAB_SHARES;
	else
		raidlab_shared = NULL;

	/* always look at that free_until from now on */
