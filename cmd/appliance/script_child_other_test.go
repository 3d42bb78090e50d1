//go:build !linux

package main

import "syscall"

// dieWithUs has no means here: a child outlives a killed test process.
func dieWithUs() *syscall.SysProcAttr { return nil }
