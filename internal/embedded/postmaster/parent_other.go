//go:build !linux

package postmaster

import "syscall"

// dieWithParent: only Linux can; elsewhere the next start ends the orphan.
func dieWithParent(*syscall.SysProcAttr) {}
