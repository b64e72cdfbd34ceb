package test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/localgce"
)

// A VM that was deleted for good is removed from the members by the leader, a minute after it was last heard of, and
// only once the Compute API says that it is gone: while its lists are old it is a member that is out of reach.
func TestADeletedVMIsRemovedOnceItsDeathIsProven(t *testing.T) {
	t.Parallel()
	onlyInChaos(t, "3 minutes")
	c, l := threeMembers(t)
	vm := c.follower(t)
	c.must(t, c.SetFault(localgce.Compute, localgce.Fault{Kind: "stale"}))
	c.must(t, c.DeleteVM(t.Context(), vm, true))
	c.vms = slices.DeleteFunc(slices.Clone(c.vms), func(name string) bool { return name == vm })
	leader := c.leader(t)
	time.Sleep(75 * time.Second) // a voter may be removed after 60 s, if it is proven gone
	s, err := c.status(leader)
	c.must(t, err)
	if n := len(voters(s)); n != 3 {
		t.Errorf("on lists that still show %s there are %d voters", vm, n)
	}
	c.must(t, c.blocked(leader, "member-unreachable"))
	c.must(t, c.SetFault(localgce.Compute, localgce.Fault{}))
	await(t, vm+" is removed once it is proven gone", func() error {
		s, err := c.status(leader)
		if err != nil || len(s.Etcd.Members) != 2 || len(voters(s)) != 2 {
			return fmt.Errorf("%+v, %w", s.Etcd.Members, err)
		}
		return nil
	})
	since := time.Now()
	await(t, "clients go on", func() error { return l.goOn(since) })
}
