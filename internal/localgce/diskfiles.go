package localgce

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/quorate/quorate/internal/localgce/disk"
)

// withData calls f with a VM's data disk: as the VM has it mounted while it runs, else mounted aside. v.ops is held.
func (p *Project) withData(ctx context.Context, v *vm, f func(*os.Root) error) (err error) {
	open := func(folder string) error {
		root, err := os.OpenRoot(folder)
		if err != nil {
			return err
		}
		defer root.Close()
		return f(root)
	}
	if v.machine != nil {
		if v.machine.stall != nil {
			return errors.New("it is frozen")
		}
		return open(p.dataFolder(v))
	}
	image := p.image(v.Disk.Image)
	if err := disk.Ensure(ctx, image, v.Disk.Bytes); err != nil {
		return err
	}
	l, err := disk.Attach(image)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Detach()) }()
	return disk.WithMount(p.names.Scratch("aside"), l.Device, open)
}

// Corruption is what CorruptDisk takes.
type Corruption = disk.Corruption

// CorruptDisk flips bits in a file of a VM's data disk, behind the back of whoever has it open, and returns the file's
// path.
func (p *Project) CorruptDisk(ctx context.Context, name string, c disk.Corruption) (path string, err error) {
	err = p.operate(name, "", func(v *vm) error {
		return p.withData(ctx, v, func(root *os.Root) (err error) {
			path, err = disk.Corrupt(root, c)
			return err
		})
	})
	if err != nil {
		return "", fmt.Errorf("corrupt the disk of %s: %w", name, err)
	}
	return path, nil
}

// TruncateDisk cuts a file of a VM's data disk to a size in bytes, below 0 to so many fewer than it has, and returns
// its path.
func (p *Project) TruncateDisk(ctx context.Context, name, pattern string, size int64) (path string, err error) {
	err = p.operate(name, "", func(v *vm) error {
		return p.withData(ctx, v, func(root *os.Root) (err error) {
			path, err = disk.Truncate(root, pattern, size)
			return err
		})
	})
	if err != nil {
		return "", fmt.Errorf("cut a file on the disk of %s: %w", name, err)
	}
	return path, nil
}

// GrowDisk makes a VM's data disk larger, also while it is in use. Its file system grows at the VM's next boot. A
// master's image does that at once, by itself: it takes a capability that containers and VMs of namespaces lack.
func (p *Project) GrowDisk(ctx context.Context, name string, bytes int64) error {
	err := p.operate(name, "", func(v *vm) error {
		if bytes <= v.Disk.Bytes {
			return fmt.Errorf("%d bytes: a disk only grows, and it has %d", bytes, v.Disk.Bytes)
		}
		image := p.image(v.Disk.Image)
		if err := disk.Ensure(ctx, image, v.Disk.Bytes); err != nil {
			return err
		}
		if err := os.Truncate(image, bytes); err != nil {
			return err
		}
		if v.machine != nil {
			if err := v.machine.disk.Grown(); err != nil {
				return err
			}
		}
		p.mu.Lock()
		v.Disk.Bytes = bytes
		p.mu.Unlock()
		return p.save()
	})
	if err != nil {
		return fmt.Errorf("enlarge the disk of %s: %w", name, err)
	}
	return nil
}

// FillDisk takes all space of a VM's data disk but so many bytes, until FreeDisk: writes then end in ENOSPC. Files keep
// the blocks that they have. It stays full over reboots.
func (p *Project) FillDisk(ctx context.Context, name string, leave int64) error {
	err := p.operate(name, "", func(v *vm) error {
		return p.withData(ctx, v, func(root *os.Root) error { return disk.Fill(root, leave) })
	})
	if err != nil {
		return fmt.Errorf("fill the disk of %s: %w", name, err)
	}
	return nil
}

// FreeDisk ends FillDisk.
func (p *Project) FreeDisk(ctx context.Context, name string) error {
	err := p.operate(name, "", func(v *vm) error { return p.withData(ctx, v, disk.Free) })
	if err != nil {
		return fmt.Errorf("free the disk of %s: %w", name, err)
	}
	return nil
}
