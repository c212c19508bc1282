/*
 * What computing costs: `tt-charges` has a number for each, in this order, femtoseconds of
 * the last three for each byte.
 */
enum raidlab_charge {
	RAIDLAB_SWITCH,
	RAIDLAB_WAKE_CALL,
	RAIDLAB_DISPATCH,
	RAIDLAB_INTERRUPT,
	RAIDLAB_COMPLETE,
	RAIDLAB_REQUEST,
	RAIDLAB_REQUEST_END,
	RAIDLAB_MEMBER,
	RAIDLAB_BITMAP,
	RAIDLAB_FIND,
	RAIDLAB_HANDLE,
	RAIDLAB_RELEASE,
	RAIDLAB_XOR,
	RAIDLAB_PQ,
	RAIDLAB_COPY,
	RAIDLAB_CHARGES
};

/* So many of it are owed. */
void raidlab_owe(enum raidlab_charge what, unsigned long times);
/* What is owed is paid, where time may pass. */
void raidlab_pay(void);
/* Both. */
void raidlab_charge(enum raidlab_charge what, unsigned long times);
/* The scheduler's clock; 0: its own. */
unsigned long long raidlab_sched_clock(void);

#endif /* _UAPI_LINUX_UM_TIMETRAVEL_H */
