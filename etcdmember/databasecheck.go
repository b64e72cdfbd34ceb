package etcdmember

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/quorate/quorate/etcdmember/datadir"
	"github.com/quorate/quorate/etcdmember/table"
)

// StartsBeforeCheck is how often etcd is started on a directory, one soon after the other and for nothing, before the
// database is read whole. That takes as long as reading all of it, and what ends etcd once or twice is most often not
// on the disk.
const StartsBeforeCheck = 3

// databaseCheck reads the database whole once etcd has ended on it again and again. That etcd ended is only why it is
// read: nothing but the pages themselves condemns them.
type databaseCheck struct {
	log *slog.Logger
	dir string // etcd's
	// starts counts the member's, one soon after the other; readAt is after how many of them the database was last read
	// whole. 0: not since they began.
	starts table.Starts
	readAt int
	// found is what that has found, where it was no damage; damage is the one that it found, until it is written down.
	found  string
	damage *datadir.Damage
}

// due: etcd has ended on the directory so often that its database is to be read whole. One that was sound, or could not
// be read, is read again after twice as many starts.
func (c *databaseCheck) due() bool {
	if c.starts.Runs < StartsBeforeCheck {
		c.readAt, c.found = 0, ""
	}
	return c.starts.Runs >= max(StartsBeforeCheck, 2*c.readAt)
}

// read reads the database whole where that is due, and makes the damage that it finds part of what the directory is.
// The member is stopped.
func (c *databaseCheck) read(ctx context.Context, d *table.Directory) {
	if !c.due() || !d.Exists || d.OpenErr != nil {
		return
	}
	begin := time.Now()
	damage, err := datadir.FindDamage(ctx, c.dir)
	if ctx.Err() != nil {
		return
	}
	c.readAt = c.starts.Runs
	if damage != nil {
		d.OpenErr = damage.Err()
		c.damage = damage
		return
	}
	c.found = "its database was read whole, and is sound"
	if err != nil {
		c.found = fmt.Sprintf("its database could not be read whole, which says nothing of what it holds: %v", err)
	}
	c.log.Info("read the database whole", "starts", c.starts.Runs, "found", c.found, "took",
		time.Since(begin).Round(time.Millisecond).String())
}
