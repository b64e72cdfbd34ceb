package test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/localgce"
)

// followed is how soon an order has to show: it is read within 10 s, and two busy cores have other tests to run.
const followed = 20 * time.Second

// leaderFollowed is the same for the order that the leader leaves: it hands over first, and the next leader has to come
// and remove it. Up to 10 s go until the leader reads it, and a snapshot is saved before.
const leaderFollowed = 30 * time.Second

// order gives an order and returns its number.
func (c *cluster) order(t *testing.T, args ...string) (number uint64) {
	t.Helper()
	text, err := c.quorate(t, append(args, "-o", "json")...)
	c.must(t, err)
	var given struct {
		Number uint64 `json:"number"`
	}
	c.must(t, json.Unmarshal([]byte(text), &given))
	return given.Number
}

// orderState says whether an order does not stand as wanted.
func (c *cluster) orderState(t *testing.T, number uint64, want string) error {
	text, err := c.quorate(t, "orders", "-o", "json")
	if err != nil {
		return err
	}
	var list []struct {
		Number uint64 `json:"number"`
		State  string `json:"state"`
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return err
	}
	for _, o := range list {
		if o.Number == number && o.State == want {
			return nil
		}
	}
	return fmt.Errorf("order %d is not %s: %+v", number, want, list)
}

// soon waits for what an order wants, and says when it came.
func soon(t *testing.T, what string, ok func() error) {
	t.Helper()
	within(t, followed, what, ok)
}

func within(t *testing.T, limit time.Duration, what string, ok func() error) {
	t.Helper()
	begin := time.Now()
	await(t, what, ok)
	took := time.Since(begin)
	t.Logf("%s: %s after the order", what, took.Round(100*time.Millisecond))
	if took > limit {
		t.Errorf("%s took %s, and has to come within %s", what, took, limit)
	}
}

func TestOrdersAreFollowedWithinSeconds(t *testing.T) {
	t.Parallel()
	c, l := threeMembers(t)
	t.Run("a pause holds a join back", func(t *testing.T) { pausedJoin(t, c) })
	t.Run("the leader leaves, stays out, and comes back", func(t *testing.T) { leaveAndReturn(t, c) })
	c.invariants(t, l)
}

func pausedJoin(t *testing.T, c *cluster) {
	vm := c.follower(t)
	before := c.member(t, vm)
	c.order(t, "pause", "--reason", "a test")
	c.must(t, c.RecreateVM(t.Context(), vm, localgce.Recreation{Wipe: true}))
	soon(t, vm+" waits", func() error { return c.blocked(vm, "paused") })
	time.Sleep(12 * time.Second) // longer than any agent goes without an observation
	c.must(t, c.blocked(vm, "paused"))
	s, err := c.status(c.others(vm)[0])
	c.must(t, err)
	if len(s.Etcd.Members) != 3 || !strings.Contains(fmt.Sprint(s.Etcd.Members), before) {
		t.Errorf("the members changed while that was paused: %+v", s.Etcd.Members)
	}
	c.order(t, "resume")
	soon(t, vm+" has joined", c.membersWhole)
	c.wantMember(t, vm, before, false)
}

func leaveAndReturn(t *testing.T, c *cluster) {
	vm := c.leader(t)
	before := c.member(t, vm)
	leave := c.order(t, "orders", "give", "leave", vm, "--yes")
	within(t, leaderFollowed, "the order is done", func() error { return c.orderState(t, leave, "done") })
	await(t, vm+" has left", func() error { return c.blocked(vm, "left") })
	for _, other := range c.others(vm) {
		s, err := c.status(other)
		c.must(t, err)
		if len(s.Etcd.Members) != 2 || len(voters(s)) != 2 {
			t.Errorf("%s sees %+v", other, s.Etcd.Members)
		}
	}
	c.must(t, c.RecreateVM(t.Context(), vm, localgce.Recreation{Wipe: true}))
	await(t, vm+" stays out when it is recreated", func() error { return c.blocked(vm, "left") })
	c.order(t, "orders", "withdraw", fmt.Sprint(leave))
	soon(t, vm+" is back", c.membersWhole)
	c.must(t, c.orderState(t, leave, "withdrawn"))
	c.wantMember(t, vm, before, false)
}
