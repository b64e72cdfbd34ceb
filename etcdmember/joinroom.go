package etcdmember

import (
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/local"
)

// roomOf asks how full a disk is.
func roomOf(dir string) (table.Room, error) {
	free, total, err := local.Room(dir)
	return table.Room{Free: free, Total: total}, err
}

// observeRoom looks how full the data disk is, before a member runs on it. What cannot be found out is not known, and
// holds nothing back.
func (m *Membership) observeRoom(f *table.Facts) {
	if f.Directory.Running || !m.opened {
		return
	}
	if r, err := m.room(m.cfg.Cluster.Etcd.DataDir); err == nil {
		f.Room = r
	}
}
