extern unsigned long raidlab_syscall_cost;
unsigned long raidlab_syscall_cost;

static int __init raidlab_setup_syscall_cost(char *text)
{
	return kstrtoul(text, 0, &raidlab_syscall_cost) == 0;
}
__setup("tt-syscall-cost=", raidlab_setup_syscall_cost);

void handle_syscall(struct uml_pt_regs *r)
{
