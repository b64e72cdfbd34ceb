package etcdmember

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"os"

	"github.com/quorate/quorate/etcdmember/datadir"
	"github.com/quorate/quorate/etcdmember/restoredir"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

// What the imitated world of the acting tests has for restores: the record's objects, and a process that makes
// directories.

// idOf is the member id that a token gives in this world.
func idOf(token string) record.MemberID {
	h := fnv.New64()
	h.Write([]byte(token))
	return record.MemberID(h.Sum64())
}

// makeDirectory is the process that makes a directory: it reads the source and makes a real log of another cluster.
func (m *machine) makeDirectory(_ context.Context, work restoredir.Job) error {
	return m.power.write("make directory", func() error {
		m.made = work
		if work.Directory != "" {
			d, err := datadir.Read(work.Directory)
			if err != nil || d.OpenErr != nil || !d.Exists {
				return fmt.Errorf("the source cannot be read: %+v, %w", d, errors.Join(err, d.OpenErr))
			}
		} else if b, err := os.ReadFile(work.Snapshot); err != nil || string(b) != "a snapshot\n" {
			return fmt.Errorf("the snapshot is %q, %w", b, err)
		}
		return makeDirectory(work.Out, &table.MemberStatus{MemberID: idOf(work.Token), ClusterID: idOf(work.Token) + 1})
	})
}
