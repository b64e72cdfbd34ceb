package etcdtest

import (
	"context"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/replica"
)

// Compute is a Compute API that lists what it is made of, and one disk, d1.
type Compute []replica.VM

// VMs is of etcdmember.ComputeAPI.
func (c Compute) VMs(context.Context) ([]replica.VM, time.Time, error) {
	return slices.Clone(c), time.Time{}, nil
}

// VM is of etcdmember.ComputeAPI.
func (c Compute) VM(_ context.Context, p replica.Place) (replica.VM, bool, error) {
	n := slices.IndexFunc(c, func(vm replica.VM) bool { return vm.Place == p })
	if n < 0 {
		return replica.VM{}, false, nil
	}
	return c[n], true, nil
}

// Disks is of etcdmember.ComputeAPI.
func (c Compute) Disks(context.Context) ([]replica.Disk, error) {
	return []replica.Disk{{ID: "d1"}}, nil
}

// Disk is of etcdmember.ComputeAPI.
func (c Compute) Disk(_ context.Context, id string) (replica.Disk, bool, error) {
	return replica.Disk{ID: id}, id == "d1", nil
}
