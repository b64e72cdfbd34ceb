package addons

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/quorate/quorate/addons/plan"
	"github.com/quorate/quorate/internal/backoff"
)

// inFlight holds the older set's write in the apiserver while the newer set is applied: for less than the deadline of a
// write, so that it lands, and for longer than a new set waits before it deletes. Neither may leave an object that
// stands in no inventory.
func inFlight(t *testing.T, c *realCluster) {
	pace := Pace{Resync: fast.Resync, Poll: fast.Poll, Write: 5 * time.Second}
	for name, hold := range map[string]time.Duration{"write-lands": pace.Write * 4 / 5, "write-late": pace.grace() +
		2*time.Second} {
		t.Run(name, func(t *testing.T) {
			c.reset(t)
			arrived := make(chan struct{})
			once := sync.OnceFunc(func() { close(arrived) })
			c.webhook(t, "holding-"+name, func(r *admissionv1.AdmissionRequest) string {
				if r.Name == name && r.Operation == admissionv1.Create && !*r.DryRun {
					once()
					time.Sleep(hold)
				}
				return ""
			})
			both := "both-" + name
			older := writeFolder(t, t.TempDir(), map[string]string{"version": "1",
				"a.yaml": configMapYAML("default", both, "older"), "b.yaml": configMapYAML("default", name, "x")})
			newer := writeFolder(t, t.TempDir(), map[string]string{"version": "2",
				"a.yaml": configMapYAML("default", both, "newer")})
			c.grant(t, older, newer)
			o := c.manage(t, "older", older, pace)
			select {
			case <-arrived:
			case <-time.After(time.Minute):
				t.Fatal("the older set's write does not come")
			}
			sent := time.Now()
			n := c.manage(t, "newer", newer, pace)
			n.becomes(t, "the newer set is in place", allInPlace(1))
			if took := time.Since(sent); took > hold {
				t.Skipf("the newer set took %s, and the write is held for %s", took, hold)
			}
			o.becomes(t, "the older set stands back", func(s plan.Status) bool { return s.Standing == plan.Older })
			eventually(t, "nothing of the older set is left", time.Minute, func() error {
				inventory := c.configMap(t, plan.InventoryNamespace, plan.InventoryName).Data["objects"]
				if strings.Contains(inventory, " "+name+"\n") {
					return fmt.Errorf("the inventory is %q", inventory)
				}
				return nil
			})
			time.Sleep(time.Until(sent.Add(hold + time.Second)))
			if c.configMap(t, "default", name) != nil {
				t.Error("an object of the older set stands in no inventory")
			}
		})
	}
}

// side is how long two versions run side by side: the hour of real time with QUORATE_ADDONS=hour, otherwise an hour by
// ten times the pace.
func side() (window time.Duration, pace Pace) {
	if os.Getenv("QUORATE_ADDONS") == "hour" {
		return time.Hour, Pace{}
	}
	return time.Hour / 10, Pace{Resync: defaultResync / 10, Poll: defaultPoll / 10, Write: defaultWrite / 10}
}

// A roll that has stopped half way: for an hour the managers run with two versions of a set, three of each, while they
// are restarted and a person deletes objects. Nothing of the newer set may ever be missing or be the older one's, and
// nothing that only the older one has may come back.
func TestTwoVersionsSideBySideTheOlderFirst(t *testing.T) { sideBySide(t, "older") }

// The same, where the newer set was there first.
func TestTwoVersionsSideBySideTheNewerFirst(t *testing.T) { sideBySide(t, "newer") }

func sideBySide(t *testing.T, first string) {
	if os.Getenv("QUORATE_ADDONS") == "" {
		t.Skip("takes seven minutes; make addons runs it")
	}
	t.Parallel()
	withCluster(t, func(t *testing.T, c *realCluster) { c.sideBySide(t, first) })
}

func (c *realCluster) sideBySide(t *testing.T, first string) {
	const shared = 20
	window, pace := side()
	folders := map[string]string{}
	for name, version := range map[string]string{"older": "2026.9", "newer": "2026.10"} {
		files := map[string]string{"version": version, "only.yaml": configMapYAML("default", "only-"+name, "x")}
		for n := range shared {
			files[fmt.Sprintf("shared-%d.yaml", n)] = configMapYAML("default", fmt.Sprintf("shared-%d", n), name)
		}
		folders[name] = writeFolder(t, t.TempDir(), files)
	}
	c.grant(t, folders["older"], folders["newer"])
	all := map[string]*running{}
	begin := func(set string) {
		for _, replica := range []string{"a", "b", "c"} {
			name := set + "-" + replica
			all[name] = c.manage(t, name, folders[set], pace)
		}
	}
	begin(first)
	for _, m := range all {
		m.becomes(t, "the first set is in place", allInPlace(shared+1))
	}
	if first == "older" {
		begin("newer")
	} else {
		begin("older")
	}
	eventually(t, "the newer set is whole and the older one gone", 2*time.Minute, func() error {
		s, err := all["newer-a"].status()
		if err == nil && (!allInPlace(shared+1)(s) || c.configMap(t, "default", "only-older") != nil) {
			err = fmt.Errorf("%d of %d are in place, kept: %q", s.InPlace, s.Objects, s.Kept)
		}
		return err
	})
	for _, name := range []string{"older-a", "older-b", "older-c"} {
		all[name].becomes(t, "the older set stands back", func(s plan.Status) bool { return s.Standing == plan.Older })
	}
	// The inventory is written after what is deleted, and by one of the managers that delete.
	twoPasses(t, slices.Collect(maps.Values(all)))
	const parts = 12 // of the hour, each with a disturbance
	_, at := c.requests(t, 0)
	observations, hands, quiet := 0, 0, 0
	for part := range parts {
		gone := map[string]bool{} // what a person has just deleted
		switch part % 4 {
		case 0:
			quiet++
		case 1: // an older manager starts anew, and reads its folder as if it were the first
			all["older-b"].stop()
			all["older-b"] = c.manage(t, "older-b", folders["older"], pace)
		case 2: // all that know of the newer set start anew
			for _, name := range []string{"newer-a", "newer-b", "newer-c"} {
				all[name].stop()
				all[name] = c.manage(t, name, folders["newer"], pace)
			}
		case 3:
			for _, name := range []string{"shared-3", "only-newer"} {
				if err := c.admin.Delete(t.Context(), c.configMap(t, "default", name)); err != nil {
					t.Fatal(err)
				}
				gone[name] = true
				hands++
			}
		}
		begun, seen := time.Now(), map[string]string{}
		_, begin := c.requests(t, at)
		at = begin
		for time.Since(begun) < window/parts {
			for _, name := range []string{"shared-0", "shared-3", "only-newer"} {
				cm := c.configMap(t, "default", name)
				switch {
				case cm == nil && gone[name] && time.Since(begun) < 2*time.Minute: // it is on its way
				case cm == nil:
					t.Errorf("%s is missing in part %d", name, part)
				case cm.Data["key"] == "older":
					t.Errorf("%s is the older set's in part %d", name, part)
				case !gone[name] && seen[name] != "" && seen[name] != cm.ResourceVersion:
					t.Errorf("%s has changed in part %d", name, part)
				case !gone[name]:
					seen[name] = cm.ResourceVersion
				}
			}
			if c.configMap(t, "default", "only-older") != nil {
				t.Errorf("only-older is there in part %d", part)
			}
			observations++
			if backoff.Sleep(t.Context(), max(time.Second, window/3600)) != nil {
				return
			}
		}
		for name := range gone {
			if c.configMap(t, "default", name) == nil {
				t.Errorf("%s has not come back in part %d", name, part)
			}
		}
		var list []request
		list, at = c.requests(t, begin)
		if writes, _ := writesOf(list); part%4 != 3 && len(writes) > 0 {
			t.Errorf("in part %d these of %d requests write: %v", part, len(list), writes)
		} else {
			t.Logf("part %d: %d requests, %d writes", part, len(list), len(writes))
		}
	}
	var written uint64
	for name, m := range all {
		s, err := m.status()
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(name, "older") && first == "newer" {
			written += s.Writes
		}
	}
	if written > 0 {
		t.Errorf("the managers of the older set, which were second, wrote %d times", written)
	}
	t.Logf("%s: %d observations, %d deletions by hand, %d quiet parts", window, observations, hands, quiet)
}
