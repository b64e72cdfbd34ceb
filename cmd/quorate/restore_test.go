package main

import (
	"strings"
	"testing"
)

func TestVMsAreStoppedBySomebody(t *testing.T) {
	f := restoreFlags{stopVMs: true, noWait: true}
	err := f.check()
	if err == nil || !strings.Contains(err.Error(), "--stop-vms with --no-wait") || exitCode(err) != exitUsage {
		t.Errorf("VMs are stopped by nobody: %v", err)
	}
}
