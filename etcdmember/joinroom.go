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

// observeRoom asks how full the data disk is, before a member runs on it, and where a step has failed because it is
// full. What cannot be found out is not known, and holds nothing back.
func (m *Membership) observeRoom(f *table.Facts) {
	if !m.opened || f.Directory.Running && !f.Tries.FailedForSpace() {
		return
	}
	if r, err := m.room(m.cfg.Cluster.Etcd.DataDir); err == nil {
		f.Room = r
	}
}
