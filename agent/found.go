package agent

import (
	"context"
	"sync"

	"github.com/quorate/quorate/etcdmember"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/replica"
)

// found is what the first phases have found out, for those who run side by side with them.
type found struct {
	mu         sync.Mutex
	self       replica.Identity
	cluster    *replica.Cluster
	membership *etcdmember.Membership
}

// opened is the membership; nil before the record is read.
func (f *found) opened() *etcdmember.Membership {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.membership
}

// memberStatus is how the own member sees itself and the others; nothing before there is one.
func (f *found) memberStatus(ctx context.Context) (table.MemberStatus, error) {
	m := f.opened()
	if m == nil {
		return table.MemberStatus{}, nil
	}
	return m.Status(ctx)
}
