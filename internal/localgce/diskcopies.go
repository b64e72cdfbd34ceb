package localgce

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/localgce/disk"
)

// copyDisk copies a VM's data disk to a new file. Of one that is in use it takes what a power cut would leave, by
// reflink; where the file system has none, it freezes the disk for the copy, which then also holds what was not synced.
// v.ops is held.
func (p *Project) copyDisk(v *vm, to string) error {
	from, target := p.image(v.Disk.Image), p.image(to)
	if v.machine == nil {
		if err := disk.Ensure(context.Background(), from, v.Disk.Bytes); err != nil {
			return err
		}
		return disk.Copy(from, target)
	}
	err := disk.Clone(from, target)
	if !errors.Is(err, disk.ErrNoReflink) {
		return err
	}
	if v.machine.stall == nil {
		s, err := disk.Freeze(p.dataFolder(v))
		if err != nil {
			return err
		}
		defer func() { _ = s.End() }() // a thaw fails only where it is thawed already
	}
	return disk.Copy(from, target)
}

// SnapshotDisk keeps a VM's data disk as it is now under a name of the project's.
func (p *Project) SnapshotDisk(name, snap string) error {
	if !gceName.MatchString(snap) {
		return fmt.Errorf("snapshot %q: lower-case letters, digits and '-' are allowed", snap)
	}
	return p.operate(name, "", func(v *vm) error {
		if _, err := p.snapshot(snap); err == nil {
			return fmt.Errorf("snapshot %s: there is one of that name", snap)
		}
		s := snapshot{Name: snap, Source: v.Disk.Disk, Image: imageFile(snap), Created: time.Now().UTC()}
		if err := p.copyDisk(v, s.Image); err != nil {
			return fmt.Errorf("snapshot the disk of %s: %w", name, err)
		}
		p.mu.Lock()
		p.snapshots = append(slices.Clone(p.snapshots), s)
		p.mu.Unlock()
		return p.save()
	})
}

func (p *Project) snapshot(name string) (snapshot, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var known []string
	for _, s := range p.snapshots {
		if s.Name == name {
			return s, nil
		}
		known = append(known, s.Name)
	}
	return snapshot{}, fmt.Errorf("no snapshot is named %q; there are %s", name, listed(known))
}

// DeleteSnapshot deletes a snapshot.
func (p *Project) DeleteSnapshot(name string) error {
	s, err := p.snapshot(name)
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.snapshots = slices.DeleteFunc(slices.Clone(p.snapshots), func(x snapshot) bool { return x.Name == name })
	p.mu.Unlock()
	return p.forgetImage(s.Image)
}

// RestoreDisk gives a VM that is off a disk made of a snapshot in place of its own, of the same name and as on GCE with
// a new id; with sameID what is on the disk is as old, and its id tells nothing.
func (p *Project) RestoreDisk(name, snap string, sameID bool) error {
	return p.operate(name, statusTerminated, func(v *vm) error {
		s, err := p.snapshot(snap)
		if err != nil {
			return fmt.Errorf("restore the disk of %s: %w", name, err)
		}
		return p.replaceDisk(v, sameID, func(to string) error { return disk.Copy(p.image(s.Image), p.image(to)) })
	})
}

// replaceDisk gives a VM that is off a disk whose file make makes, and removes the former one. v.ops is held.
func (p *Project) replaceDisk(v *vm, sameID bool, make func(file string) error) error {
	next := p.volumeOf(v.Disk.Disk, v.Disk.Zone)
	if sameID {
		next.Disk = v.Disk.Disk
	}
	if err := make(next.Image); err != nil {
		return fmt.Errorf("replace the disk of %s: %w", v.key(), err)
	}
	return p.putDisk(v, next)
}

// putDisk puts a disk in the place of a VM's that is off, and removes the former one's file. v.ops is held.
func (p *Project) putDisk(v *vm, next volume) error {
	former := v.Disk.Image
	p.mu.Lock()
	v.Disk = next
	p.mu.Unlock()
	return p.forgetImage(former)
}

// CloneDisk gives a VM that is off a copy of another VM's data disk, in place of its own: of the same name as its own,
// with a new id.
func (p *Project) CloneDisk(from, to string) error {
	return p.operateTwo(from, "", to, statusTerminated, func(a, b *vm) error {
		return p.replaceDisk(b, false, func(file string) error { return p.copyDisk(a, file) })
	})
}

// SwapDisks exchanges the data disks of two VMs that are off. Each disk keeps its id and name, and moves to the other's
// zone, which GCE's own disks cannot.
func (p *Project) SwapDisks(a, b string) error {
	return p.operateTwo(a, statusTerminated, b, statusTerminated, func(a, b *vm) error {
		p.mu.Lock()
		a.Disk, b.Disk = b.Disk, a.Disk
		a.Disk.Zone, b.Disk.Zone = a.Zone, b.Zone
		p.mu.Unlock()
		return p.save()
	})
}

// EmptyDisk makes a new file system on the disk of a VM that is off. The disk's id stays.
func (p *Project) EmptyDisk(name string) error {
	return p.operate(name, statusTerminated, func(v *vm) error {
		return p.replaceDisk(v, true, func(string) error { return nil }) // the boot makes the file
	})
}

// operateTwo is operate for two VMs.
func (p *Project) operateTwo(first, wantedFirst, second, wantedSecond string, f func(a, b *vm) error) error {
	if first == second {
		return fmt.Errorf("vm %s is named twice: two are needed", first)
	}
	// The order of names is the order of locks.
	if strings.Compare(first, second) < 0 {
		return p.operate(first, wantedFirst, func(a *vm) error {
			return p.operate(second, wantedSecond, func(b *vm) error { return f(a, b) })
		})
	}
	return p.operate(second, wantedSecond, func(b *vm) error {
		return p.operate(first, wantedFirst, func(a *vm) error { return f(a, b) })
	})
}
