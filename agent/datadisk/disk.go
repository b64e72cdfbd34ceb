// Package datadisk says whether this VM's data disk can be used, and waits until it can.
//
//	AwaitMount ──── it is attached, mounted, readable and writable   the kernel
//	Learn ───────── its id, and who else may write to it             the Compute API, in the background
//	OneWriter ───── nobody else may, or the answer takes too long
//	WatchRoom ───── it has room left                                 the file system
//
// Guarantees: nothing is made or read beneath the mount point before the disk is mounted there. A disk that stands
// still holds up nobody but who waits for it. What keeps a disk from being used is a wait for people, with what they
// can do about it. An answer of the Compute API that has not come holds up nothing for longer than two seconds.
//
// It mounts, formats and repairs nothing: the image's unit does the first two, a person the third. It does not read
// what is on the disk: etcdmember/datadir does.
package datadisk

import (
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/internal/waits"
)

// Image is the data disk that the image mounts, by its device name, and where. The zero value: the image mounts none.
type Image struct {
	Device string `json:"device"`
	Dir    string `json:"dir"`
	// Unit is systemd's unit that mounts it.
	Unit string `json:"unit"`
}

// Require makes the disk that the image mounts the one that a document needs which names none. Else a mount that fails
// would leave etcd on the boot disk, which is gone with the VM. A data directory elsewhere is on purpose.
func (d Image) Require(c *replica.Cluster) error {
	if d.Device == "" || c.Etcd.DataDisk != "" || c.Etcd.DataDir != d.Dir {
		return nil
	}
	c.Etcd.DataDisk = d.Device
	if err := c.Validate(); err != nil {
		return fmt.Errorf("the data disk that the image names: %w", err)
	}
	return nil
}

// Disk is this VM's data disk. Several may use it at once.
type Disk struct {
	log    *slog.Logger
	waits  *waits.Phased
	image  Image
	places places

	mu     sync.Mutex
	exists bool
	id     string // the Compute API's; empty: not known yet
	// answered is closed once nobody has to wait any longer for what Learn asks.
	answered <-chan struct{}
	// shared is why another VM may write to it, too; empty: none may, or that is not known.
	shared string
	// size was measured last; nil: not yet.
	size *Size
}

// New is a disk of which nothing is known yet. It has to be mounted also where the document names none, if the image
// mounts it.
func New(log *slog.Logger, w *waits.Phased, image Image) *Disk {
	nothingAsked := make(chan struct{})
	close(nothingAsked)
	return &Disk{log: log, waits: w, image: image, places: kernel, answered: nothingAsked}
}

// Open says whether this VM has a data disk of its own, and its id, if that is remembered from this boot.
func (d *Disk) Open(exists bool, id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.exists, d.id, d.shared = exists, id, ""
}

// ID is the Compute API's id of the data disk; empty while it is not known.
func (d *Disk) ID() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.id
}

// IDUnknown says that there is such a disk, and that the API has not yet said its id.
func (d *Disk) IDUnknown() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.exists && d.id == ""
}

const (
	// mountPeriod is the time between two observations of a data disk that cannot be used.
	mountPeriod = time.Second
	// hangs is how long an observation of the data disk may take. A disk that answers does so within milliseconds.
	hangs = 5 * time.Second
	// settles is how long a disk may be attached without being mounted. A blank one is formatted meanwhile.
	settles = 15 * time.Second
	// patience is how long after the first question a boot waits for the data disk's id. Without it the boot goes on:
	// a disk that was rolled back is then found by its incarnation and its marks.
	patience = 2 * time.Second
	// askTimeout bounds one question: two calls of the Compute API with a token that has to be fetched first.
	askTimeout = 10 * time.Second
	// The pause between two questions doubles from the first to the last; a permission that is granted late is found
	// within it.
	firstAskPause, lastAskPause = time.Second, time.Minute
	// sharedPeriod is the time between two questions while others may write to the disk: a person is at work.
	sharedPeriod = 10 * time.Second
	// roomPeriod is the time between two questions how full the data disk is. It fills within minutes at the fastest.
	roomPeriod = 10 * time.Second
)
