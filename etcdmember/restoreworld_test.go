package etcdmember

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"

	"github.com/quorate/quorate/etcdmember/datadir"
	"github.com/quorate/quorate/etcdmember/restoredir"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

// What the imitated world of the acting tests has for restores: the record's objects, and a process that makes
// directories.

func (r recordOf) CreateClosed(_ context.Context, e uint64, c record.Closed) (record.Closed, bool, error) {
	s := r.m.record
	return once(r, "closed", func() *record.Closed { return s.epoch(e).Closed }, func() { s.epoch(e).Closed = &c })
}

func (r recordOf) CreateOrder(_ context.Context, o record.Order) (record.Order, error) {
	err := r.m.power.write("order", func() error {
		s := r.m.record
		s.mu.Lock()
		defer s.mu.Unlock()
		o.Number = uint64(len(s.view.Orders) + 1)
		s.view.Orders = append(s.view.Orders, o)
		return s.err
	})
	return o, err
}

const oneSnapshot = "1/500-20261121T010203Z"

func (r recordOf) Snapshots(context.Context) ([]record.Snapshot, error) {
	r.m.record.mu.Lock()
	defer r.m.record.mu.Unlock()
	if r.m.record.err != nil || r.m.record.stored != nil {
		return r.m.record.stored, r.m.record.err
	}
	return []record.Snapshot{{Name: oneSnapshot, Epoch: 1, Revision: 500, Size: 11}}, nil
}

func (r recordOf) ReadSnapshot(_ context.Context, name string, to io.Writer) (record.Snapshot, error) {
	if name != oneSnapshot {
		return record.Snapshot{}, errors.New("no such snapshot")
	}
	_, err := io.WriteString(to, "a snapshot\n")
	return record.Snapshot{Name: name}, err
}

// idOf is the member id that a token gives in this world.
func idOf(token string) record.MemberID {
	h := fnv.New64()
	h.Write([]byte(token))
	return record.MemberID(h.Sum64())
}

// makeDirectory is the process that makes a directory: it looks at the source and makes a real log of another cluster.
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
