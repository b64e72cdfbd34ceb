package localgce

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/localgce/instance"
)

// volume is a data disk with the file that holds its bytes. No file is ever another volume's again, so that a crash
// between a change of files and the write of state.json leaves at worst a file that nobody names, which the next Start
// removes.
type volume struct {
	instance.Disk
	Zone string `json:"zone"`
	// Image is the file's name in the folder of the disks.
	Image string `json:"image"`
}

// snapshot is a copy of a disk as it was.
type snapshot struct {
	Name    string        `json:"name"`
	Source  instance.Disk `json:"source"`
	Image   string        `json:"image"`
	Created time.Time     `json:"created"`
}

// newVolume is a disk that has no file yet: a VM's boot makes it.
func (p *Project) newVolume(vm, zone string) volume {
	return p.volumeOf(instance.Disk{Name: vm + "-data", Bytes: p.conf.DiskSize}, zone)
}

// volumeOf gives a disk an id and a file of its own.
func (p *Project) volumeOf(d instance.Disk, zone string) volume {
	d.ID, d.Created = instance.NewID(), time.Now().UTC()
	return volume{Disk: d, Zone: zone, Image: imageFile(d.Name)}
}

// imageFile is a file name that no volume or snapshot has had.
func imageFile(name string) string { return fmt.Sprintf("%s-%d.img", name, instance.NewID()) }

// diskNamed finds a disk that no VM has. p.mu is held.
func (p *Project) diskNamed(name, zone string) int {
	return slices.IndexFunc(p.disks, func(d volume) bool { return d.Name == name && d.Zone == zone })
}

// takenBy says what has a disk of that name already, or "". p.mu is held.
func (p *Project) diskTakenBy(name, zone string) string {
	for _, v := range p.vms {
		if v.Left == 0 && v.Disk.Name == name && v.Zone == zone {
			return "vm " + v.key()
		}
	}
	if p.diskNamed(name, zone) >= 0 {
		return "nobody"
	}
	return ""
}

// DeleteDisk deletes a disk that no VM has.
func (p *Project) DeleteDisk(name, zone string) error {
	p.mu.Lock()
	i := p.diskNamed(name, zone)
	if i < 0 {
		owner := p.diskTakenBy(name, zone)
		p.mu.Unlock()
		if owner != "" {
			return fmt.Errorf("delete disk %s: %s has it", name, owner)
		}
		return fmt.Errorf("delete disk %s: there is none of that name in %s", name, zone)
	}
	gone := p.disks[i]
	p.disks = slices.Delete(slices.Clone(p.disks), i, i+1)
	p.mu.Unlock()
	return p.forgetImage(gone.Image)
}

// forgetImage writes a state that no longer names the file, and then removes it.
func (p *Project) forgetImage(file string) error {
	if err := p.save(); err != nil {
		return err
	}
	if err := os.Remove(p.image(file)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove a disk's file: %w", err)
	}
	return nil
}

// removeStrayImages removes the files that nothing names: a crash came between two steps.
func (p *Project) removeStrayImages() error {
	known := map[string]bool{}
	for _, v := range p.vms {
		known[v.Disk.Image] = true
	}
	for _, d := range p.disks {
		known[d.Image] = true
	}
	for _, s := range p.snapshots {
		known[s.Image] = true
	}
	files, _ := filepath.Glob(p.image("*.img")) // its only error is a bad pattern
	for _, f := range files {
		if known[filepath.Base(f)] {
			continue
		}
		if err := os.Remove(f); err != nil {
			return fmt.Errorf("remove a forgotten disk: %w", err)
		}
	}
	return nil
}

// image is the path of a disk's file.
func (p *Project) image(file string) string { return filepath.Join(p.depot.Folder, file) }
