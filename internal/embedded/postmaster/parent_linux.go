package postmaster

import "syscall"

// dieWithParent has the kernel send a fast shutdown when our thread dies.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGINT }
