package localgce

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/localgce/disk"
	"github.com/quorate/quorate/internal/localgce/instance"
)

// MaxStall is how long a data disk may take no writes at most.
const MaxStall = 10 * time.Minute

// dataFolder is where the host sees the data disk of a VM that runs.
func (p *Project) dataFolder(v *vm) string {
	return fmt.Sprintf("/proc/%d/root%s", v.machine.cmd.Process.Pid, instance.MountPoint)
}

// FreezeDisk makes all writes to a VM's data disk wait (fsfreeze), until ThawDisk or for the given time, 1 ms to
// MaxStall.
func (p *Project) FreezeDisk(name string, limit time.Duration) error {
	if limit < time.Millisecond || limit > MaxStall {
		return fmt.Errorf("freeze the disk of %s: %s: 1ms to %s are allowed", name, limit, MaxStall)
	}
	return p.operate(name, statusRunning, func(v *vm) error {
		m := v.machine
		if m.stall != nil {
			return fmt.Errorf("freeze the disk of %s: it is frozen already", name)
		}
		s, err := disk.Freeze(p.dataFolder(v))
		if err != nil {
			return fmt.Errorf("the disk of %s: %w", name, err)
		}
		s.EndAfter(limit, func() { p.endStall(v, m, s) })
		m.stall = s
		p.conf.Log.Info("disk is frozen", "vm", name, "limit", limit)
		return nil
	})
}

// ThawDisk ends FreezeDisk.
func (p *Project) ThawDisk(name string) error {
	return p.operate(name, statusRunning, func(v *vm) error {
		s := v.machine.stall
		if s == nil {
			return fmt.Errorf("thaw the disk of %s: it is not frozen", name)
		}
		v.machine.stall = nil
		p.conf.Log.Info("disk is thawed", "vm", name)
		return s.End()
	})
}

// endStall is a stall's limit. Where the VM or the stall has ended meanwhile there is nothing to do.
func (p *Project) endStall(v *vm, m *machine, s *disk.Stall) {
	v.ops.Lock()
	defer v.ops.Unlock()
	if v.machine != m || m.stall != s {
		return
	}
	m.stall = nil
	if err := s.End(); err != nil {
		p.conf.Log.Error("thaw disk at its limit", "vm", v.key(), "error", err)
	}
}
