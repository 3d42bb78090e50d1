package main

import "syscall"

// dieWithUs ends a child also when the test process is killed.
func dieWithUs() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
