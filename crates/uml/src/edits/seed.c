static int raidlab_seeded;
static unsigned long long raidlab_seed;

static int __init raidlab_setup_seed(char *text, int *add)
{
	raidlab_seed = strtoull(text, NULL, 0);
	raidlab_seeded = 1;
	return 0;
}
__uml_setup("tt-seed=", raidlab_setup_seed,
"tt-seed=<number>\n"
"    Draw all entropy from this number instead of from the host.\n\n"
);

/* splitmix64 */
static unsigned long long raidlab_next_random(void)
{
	unsigned long long word = (raidlab_seed += 0x9e3779b97f4a7c15ULL);

	word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9ULL;
	word = (word ^ (word >> 27)) * 0x94d049bb133111ebULL;
	return word ^ (word >> 31);
}

ssize_t os_getrandom(void *buf, size_t len, unsigned int flags)
{
	unsigned char *to = buf;
	size_t at;

	if (!raidlab_seeded)
		return getrandom(buf, len, flags);
	for (at = 0; at < len; at++)
		to[at] = raidlab_next_random() >> 56;
	return len;
