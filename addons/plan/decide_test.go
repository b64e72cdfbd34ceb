package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestDecideAboutOneObject(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	made := Live{Exists: true, Owned: true, Origin: OriginMade, Print: "p"}
	fight := &Contest{Writes: contestedAfter, Last: now.Add(-time.Second), pause: time.Minute}
	rested := &Contest{Writes: contestedAfter, Last: now.Add(-time.Minute), pause: time.Minute}
	for name, c := range map[string]struct {
		object  Object
		live    Live
		seen    *Seen
		trouble *Trouble
		contest *Contest
		waits   string
		action  Action
		origin  string
	}{
		"nothing is there: it is made": {live: Live{}, action: Create, origin: OriginMade},
		"EnsureExists, nothing is there: it is made": {object: Object{Mode: EnsureExists}, action: Create,
			origin: OriginMade},
		"EnsureExists, and it exists": {object: Object{Mode: EnsureExists}, live: made, action: Leave},
		"EnsureExists, and a person's exists": {object: Object{Mode: EnsureExists}, live: Live{Exists: true},
			action: Leave},
		"a person's exists":                 {live: Live{Exists: true, Print: "p"}, action: Refuse},
		"a person's with the label, copied": {live: Live{Exists: true, Origin: OriginMade}, action: Refuse},
		"one that lost the label":           {live: Live{Exists: true, Owned: true}, action: Refuse},
		"a person's exists, and is taken over": {object: Object{TakeOver: true}, live: Live{Exists: true},
			action: Check, origin: OriginTaken},
		"one that was taken over stays so": {live: Live{Exists: true, Owned: true, Origin: OriginTaken},
			action: Check, origin: OriginTaken},
		"never looked at": {object: Object{Hash: "h"}, live: made, action: Check,
			origin: OriginMade},
		"seen to be right": {object: Object{Hash: "h"}, live: made, seen: &Seen{"h", "p"},
			action: Keep},
		"seen to be right, and changed in the cluster": {object: Object{Hash: "h"}, live: made, seen: &Seen{"h", "q"},
			action: Check, origin: OriginMade},
		"seen to be right, and changed in the folder": {object: Object{Hash: "i"}, live: made, seen: &Seen{"h", "p"},
			action: Check, origin: OriginMade},
		"it cannot be read": {live: Live{Fault: "forbidden"}, seen: &Seen{}, action: Fail},
		"it failed a moment ago": {trouble: &Trouble{Reason: "refused", Next: now.Add(1)},
			action: Pause},
		"it failed, and its time has come": {trouble: &Trouble{Reason: "refused", Next: now},
			action: Create, origin: OriginMade},
		"it failed, and was made right by somebody": {object: Object{Hash: "h"}, live: made,
			trouble: &Trouble{Next: now}, action: Check, origin: OriginMade},
		"a taken-over one that is gone is made": {object: Object{TakeOver: true}, action: Create,
			origin: OriginMade},
		"EnsureExists that cannot be read is not lost": {object: Object{Mode: EnsureExists},
			live: Live{Fault: "no kind"}, action: Fail},
		"a seen one that somebody took the label of": {object: Object{Hash: "h"},
			live: Live{Exists: true, Owned: true, Print: "p"}, seen: &Seen{"h", "p"}, action: Refuse},
		"its pods are not ready: it is not made": {waits: "a Deployment", action: Wait},
		"its pods are not ready, and it is there already": {object: Object{Hash: "h"}, live: made,
			waits:  "a Deployment",
			action: Check, origin: OriginMade},
		"contested, and changed back": {object: Object{Hash: "h"}, live: made, contest: fight, action: Yield},
		"contested, and its mark taken away each time": {object: Object{TakeOver: true}, live: Live{Exists: true},
			contest: fight, action: Yield},
		"contested, and deleted": {contest: fight, action: Yield},
		"contested, and right at the moment": {object: Object{Hash: "h"}, live: made, seen: &Seen{"h", "p"},
			contest: fight,
			action:  Keep},
		"contested, and the pause is over": {object: Object{Hash: "h"}, live: made, contest: rested, action: Check,
			origin: OriginMade},
		"EnsureExists with take-over is still left": {object: Object{Mode: EnsureExists, TakeOver: true},
			live: Live{Exists: true}, action: Leave},
	} {
		t.Run(name, func(t *testing.T) {
			got := Decide(c.object, c.live, Known{c.seen, c.trouble, c.contest, c.waits}, now)
			if got.Action != c.action || got.Origin != c.origin {
				t.Errorf("%s with mark %q (%s); want %s with mark %q", got.Action, got.Origin, got.Reason, c.action,
					c.origin)
			}
			if got.Reason == "" && c.trouble == nil {
				t.Error("it says no reason")
			}
		})
	}
}

func TestStand(t *testing.T) {
	some := []Object{{}}
	for name, c := range map[string]struct {
		inv  *Inventory
		set  Set
		want Standing
	}{
		"no inventory":                  {nil, Set{Version: "1", Objects: some}, Newest},
		"a person took the version out": {&Inventory{Digest: "a"}, Set{Version: "1", Objects: some}, Newest},
		"a higher version":              {&Inventory{Version: "9"}, Set{Version: "10", Objects: some}, Newest},
		"a lower version":               {&Inventory{Version: "10"}, Set{Version: "9", Objects: some}, Older},
		"the same": {&Inventory{Version: "1", Digest: "a", Complete: true},
			Set{Version: "1", Digest: "a", Objects: some}, Current},
		"another of the same version": {&Inventory{Version: "1", Digest: "a", Complete: true},
			Set{Version: "1", Digest: "b", Objects: some}, Differs},
		"whole, after one with faults": {&Inventory{Version: "1", Digest: "a"}, Set{Version: "1", Digest: "b",
			Objects: some}, Newest},
		"with faults, after a whole one": {&Inventory{Version: "1", Digest: "a", Complete: true},
			Set{Version: "1", Digest: "b", Objects: some, Faults: []string{"x"}}, Differs},
		"with faults, after one with others": {&Inventory{Version: "1", Digest: "a"}, Set{Version: "1", Digest: "b",
			Objects: some, Faults: []string{"x"}}, Differs},
		"higher with faults, after a whole one": {&Inventory{Version: "1", Complete: true},
			Set{Version: "2", Objects: some, Faults: []string{"x"}}, Newest},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Stand(c.inv, c.set); got != c.want {
				t.Errorf("%s; want %s", got, c.want)
			}
		})
	}
}

// Whatever two managers hold, after each has had its turn nothing changes any more: else it would be a fight. Two
// versions of the program may render different objects from the same files, or find different faults.
func TestOfTwoSetsOneStandsBack(t *testing.T) {
	var sets []Set
	for _, v := range []Version{"1", "1.0", "2", "10"} {
		for _, files := range []string{"a", "b"} {
			for _, hash := range []string{"h", "i"} {
				for _, faults := range [][]string{nil, {"x"}} {
					s := Set{Version: v, Objects: []Object{{Hash: hash}}, Faults: faults}
					s.Digest = s.Account(files + string(v)) // the version is in a file
					sets = append(sets, s)
				}
			}
		}
	}
	turn := func(inv Inventory, s Set) Inventory {
		if Stand(&inv, s).Writes() {
			return inv.Claim(s, nil)
		}
		return inv
	}
	for _, a := range sets {
		for _, b := range sets {
			inv := turn(turn(Inventory{}, a), b)
			if next := turn(inv, a); !next.Same(inv) || !turn(next, b).Same(inv) {
				t.Errorf("%+v and %+v take the inventory from each other for ever", a, b)
			}
			sameObjects := a.Objects[0].Hash == b.Objects[0].Hash
			if Stand(&inv, a) == Current && Stand(&inv, b) == Current && !sameObjects {
				t.Errorf("%+v and %+v both write what they hold", a, b)
			}
		}
	}
}

func TestVersionsAreOrderedByTheirNumbers(t *testing.T) {
	order := []Version{"0", "1", "1.0.1", "1.2", "1.9", "1.10", "2", "2026.9.30", "2026.11.2", "2026.11.10"}
	for i, v := range order {
		for j, w := range order {
			if got, want := v.Compare(w), i-j; got*want < 0 || (got == 0) != (want == 0) {
				t.Errorf("%s against %s: %d", v, w, got)
			}
		}
	}
	if Version("1").Compare("1.0.0") != 0 || Version("01").Compare("1") != 0 {
		t.Error("a number that is not there does not count as 0, or a zero before a number counts")
	}
	for _, text := range []string{"", "v1", "1.", ".1", "1..2", "1-2", "latest", "1 2", strings.Repeat("9", 19)} {
		if v, err := ParseVersion(text); err == nil || !strings.Contains(err.Error(), "allowed: whole numbers") {
			t.Errorf("%q is read as %q: %v", text, v, err)
		}
	}
	if v, err := ParseVersion(" 2026.11.23\n"); err != nil || v != "2026.11.23" {
		t.Errorf("%q, %v", v, err)
	}
}

func TestWhatBecomesOfLeftovers(t *testing.T) {
	cm := ID{"v1", "ConfigMap", "a", "x"}
	made := Live{Exists: true, Owned: true, Origin: OriginMade}
	ensured := made
	ensured.Mode = string(EnsureExists)
	for name, c := range map[string]struct {
		id   ID
		live Live
		want Fate
	}{
		"the manager made it":                  {cm, made, Delete},
		"it is gone":                           {cm, Live{}, Forget},
		"its kind is not served at the moment": {cm, Live{Unserved: true, UnservedFor: time.Minute}, Stay},
		"its kind is gone for good":            {cm, Live{Unserved: true, UnservedFor: unservedPatience}, Release},
		"it cannot be read": {cm, Live{Fault: "forbidden", Exists: true, Owned: true,
			Origin: OriginMade}, Stay},
		"a person made it anew":             {cm, Live{Exists: true}, Release},
		"a person made it anew from a copy": {cm, Live{Exists: true, Origin: OriginMade}, Release},
		"a person took the label off":       {cm, Live{Exists: true, Owned: true}, Release},
		"it was there before":               {cm, Live{Exists: true, Owned: true, Origin: OriginTaken}, Release},
		"its mode is EnsureExists":          {cm, ensured, Release},
		"a namespace":                       {ID{"v1", "Namespace", "", "x"}, made, Release},
		"a definition, with all its objects": {ID{"apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "x"}, made,
			Release},
	} {
		t.Run(name, func(t *testing.T) {
			if got, why := Judge(c.id, c.live); got != c.want {
				t.Errorf("%s, because %s; want %s", got, why, c.want)
			}
		})
	}
}

// An object that was kept, and is EnsureExists in the next set, is not deleted by the set after that. Its live label
// still says Reconcile, since an object of that mode is never written.
func TestAnObjectSwitchedToEnsureExistsIsNeverDeleted(t *testing.T) {
	id := ID{"v1", "ConfigMap", "a", "x"}
	live := Live{Exists: true, Owned: true, Origin: OriginMade, Mode: string(Reconcile)}
	var inv Inventory
	for _, o := range []Object{{ID: id, Mode: Reconcile}, {ID: id, Mode: EnsureExists}} {
		steps := []Step{Decide(o, live, Known{}, time.Time{})}
		inv = inv.Without(Yielded(steps)).Claim(Set{Objects: []Object{o}}, Expected(steps))
		if o.Mode == Reconcile && len(inv.Objects) != 1 {
			t.Fatalf("a kept object is not in the inventory: %+v", inv)
		}
	}
	for _, id := range Leftovers(inv, Set{}) {
		if fate, _ := Judge(id, live); fate == Delete {
			t.Errorf("%s is deleted", id)
		}
	}
}

func TestNothingIsPrunedForWhatIsMissing(t *testing.T) {
	set := Set{Objects: []Object{{}}}
	for name, c := range map[string]struct {
		set   Set
		whole Whole
		want  bool
	}{
		"all is in place":     {set, Whole{Standing: Current}, true},
		"the folder is empty": {Set{}, Whole{Standing: Current}, false},
		"a file cannot be read": {Set{Objects: set.Objects, Faults: []string{"x"}}, Whole{Standing: Current},
			false},
		"the inventory is another set's": {set, Whole{Standing: Older}, false},
		"the inventory is not claimed":   {set, Whole{Standing: Newest}, false},
		"the folder is being written":    {set, Whole{Standing: Current, Changing: true}, false},
		"the claim is young": {set, Whole{Standing: Current, Held: time.Minute - 1, Grace: time.Minute},
			false},
		"the claim is old enough": {set, Whole{Standing: Current, Held: time.Minute, Grace: time.Minute}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got, why := MayPrune(c.set, c.whole); got != c.want || got == (why != "") {
				t.Errorf("%t, %q", got, why)
			}
		})
	}
}

func TestTheNewStandsBeforeTheOldGoes(t *testing.T) {
	in := func(namespace string) ID { return ID{"v1", "ConfigMap", namespace, "x"} }
	for name, c := range map[string]struct {
		leftover ID
		pending  []ID
		held     bool
	}{
		"all is in place":                    {in("a"), nil, false},
		"one of its namespace is pending":    {in("a"), []ID{in("b"), in("a")}, true},
		"one of another one is":              {in("a"), []ID{in("b")}, false},
		"one that is in no namespace is":     {in("a"), []ID{in("")}, true},
		"it is in no namespace, and some is": {in(""), []ID{in("b")}, true},
	} {
		if by, held := HeldBack(c.leftover, c.pending); held != c.held || held != (by.Kind != "") {
			t.Errorf("%s: %t, by %s", name, held, by)
		}
	}
}

func TestAFightIsARowOfWritesOfOneField(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	var c *Contest
	write := func(after time.Duration, fields ...string) {
		now = now.Add(after)
		c = c.After(fields, "hpa", now)
	}
	for range contestedAfter - 1 {
		write(time.Minute, "spec.replicas", "spec.x")
	}
	if c.Contested() {
		t.Errorf("%d writes are a contest", c.Writes)
	}
	write(time.Minute, "spec.replicas")
	if !c.Yields(now) || !c.Next().Equal(now.Add(time.Minute)) || c.Reason() !=
		"spec.replicas: changed back by hpa after each of 4 writes" {
		t.Errorf("%+v, %q", c, c.Reason())
	}
	for want := 2 * time.Minute; want < 4*lastYield; want *= 2 {
		write(c.Next().Sub(now), "spec.replicas")
		if got := c.Next().Sub(now); got != min(want, lastYield) {
			t.Errorf("the pause is %s; want %s", got, want)
		}
	}
	if over := now.Add(2*lastYield + 1); c.Over(now.Add(lastYield)) || !c.Over(over) ||
		c.After([]string{"spec.replicas"}, "",
			over).Contested() {
		t.Error("it is over too early, or never")
	}
	if write(time.Minute, "spec.other"); c.Contested() {
		t.Error("a write of another field is part of the row")
	}
	c = nil
	for range 3 * contestedAfter {
		write(contestWindow+1, "spec.replicas")
	}
	if c.Contested() {
		t.Error("what is changed once in a while is a contest")
	}
}

func TestLeftoversAreInReverseOrder(t *testing.T) {
	inv := Inventory{Objects: []ID{{"v1", "Namespace", "", "n"}, {"apps/v1", "Deployment", "n", "d"},
		{"v1", "ConfigMap", "n", "kept"}, {"v1", "ConfigMap", "n", "gone"},
		{"admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", "w"}}}
	// The same object in a later version of its API is the same object.
	set := Set{Objects: []Object{{ID: ID{"v2", "ConfigMap", "n", "kept"}}}}
	var got []string
	for _, id := range Leftovers(inv, set) {
		got = append(got, id.String())
	}
	want := []string{"ValidatingWebhookConfiguration w", "Deployment n/d", "ConfigMap n/gone", "Namespace n"}
	if !slices.Equal(got, want) {
		t.Errorf("%q; want %q", got, want)
	}
}

func TestTheInventoryComesBackAsItWasWritten(t *testing.T) {
	inv := Inventory{Version: "2026.11", Digest: "abc", Complete: true, Objects: []ID{
		{"rbac.authorization.k8s.io/v1", "ClusterRole", "", "system:coredns"}, {"v1", "ConfigMap", "kube-system",
			"a.b"}}}
	inv.Objects = sorted(inv.Objects)
	got, err := ParseInventory(inv.Encode())
	if err != nil || !got.Same(inv) {
		t.Errorf("%v: %s", err, cmp.Diff(inv, got))
	}
	for text, fault := range map[string]string{"v1 ConfigMap kube-system": "allowed: APIVERSION KIND NAMESPACE NAME",
		"v1 ConfigMap a b c": "allowed: APIVERSION KIND NAMESPACE NAME"} {
		if _, err := ParseInventory(nil, map[string]string{"objects": text}); err == nil ||
			!strings.Contains(err.Error(), fault) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := ParseInventory(map[string]string{VersionAnnotation: "newest"}, nil); err == nil {
		t.Error("a version that cannot be compared is taken for none")
	}
	claimed := inv.Claim(Set{Version: "2027", Digest: "d", Objects: []Object{{}}},
		[]ID{{"v2", "ConfigMap", "kube-system", "a.b"}})
	if len(claimed.Objects) != 2 || claimed.Objects[0].APIVersion != "v2" || claimed.Version != "2027" ||
		!claimed.Complete {
		t.Errorf("the claim is %+v", claimed)
	}
	if rest := claimed.Without([]ID{{"v1", "ConfigMap", "kube-system", "a.b"}}); len(rest.Objects) != 1 ||
		len(claimed.Objects) != 2 {
		t.Errorf("without one it is %+v", rest)
	}
}

func TestRulesAreByName(t *testing.T) {
	rules := Rules([]Grant{{"apps", "deployments", "dns", false, ""}, {"", "secrets", "s", false, ""},
		{"rbac.authorization.k8s.io", "clusterroles", "system:dns", true, ""},
		{"rbac.authorization.k8s.io", "clusterrolebindings", "dns", false, "clusterroles/system:dns"},
		{"apps", "deployments", "dns", false, ""}})
	var got []string
	for _, r := range rules[len(own()):] {
		got = append(got, fmt.Sprintf("%s/%s %s %s", r.APIGroups[0], r.Resources[0], strings.Join(r.ResourceNames, ","),
			strings.Join(r.Verbs, ",")))
	}
	want := []string{"/secrets s create,delete,get,patch", "apps/deployments dns create,delete,get,patch",
		"rbac.authorization.k8s.io/clusterrolebindings dns create,delete,get,patch",
		"rbac.authorization.k8s.io/clusterroles system:dns create,delete,get,patch",
		"rbac.authorization.k8s.io/clusterroles system:dns bind",
		"rbac.authorization.k8s.io/clusterroles system:dns escalate"}
	if !slices.Equal(got, want) {
		t.Errorf("the rules:\n%s", cmp.Diff(want, got))
	}
	var eleven []Grant
	for n := range ReadByName + 1 {
		eleven = append(eleven, Grant{Resource: "configmaps", Name: fmt.Sprint(n % 3)},
			Grant{Resource: "secrets", Name: "x"})
	}
	lists := func(grants []Grant) (out []string) {
		for _, r := range Rules(grants) {
			if slices.Contains(r.Verbs, "list") {
				out = append(out, r.Resources...)
			}
		}
		return out
	}
	if got := lists(eleven); !slices.Equal(got, []string{"configmaps"}) || len(lists(eleven[2:])) > 0 {
		t.Errorf("of eleven ConfigMaps and Secrets these are listed: %q, of ten %q", got, lists(eleven[2:]))
	}
	if lacking := Lacking(rules, rules); len(lacking) > 0 {
		t.Errorf("what is granted is lacking: %v", lacking)
	}
	if lacking := Lacking(own(), rules); len(lacking) != len(want) {
		t.Errorf("of %d rules %d are lacking", len(want), len(lacking))
	}
	everything := []Rule{{[]string{"apps"}, []string{"deployments"}, nil, writes}}
	if lacking := Lacking(everything, []Rule{{[]string{"apps"}, []string{"deployments"}, []string{"x"}, writes}}); len(
		lacking) > 0 {
		t.Errorf("a rule without names does not cover one with a name: %v", lacking)
	}
	if lacking := Lacking([]Rule{{[]string{"apps"}, []string{"deployments"}, []string{"x"}, writes}},
		everything); len(lacking) != 1 {
		t.Error("a rule with a name covers one without")
	}
}

func TestChanges(t *testing.T) {
	before := map[string]any{"kind": "X", "spec": map[string]any{"n": int64(1), "list": []any{"a", "b"}, "old": true},
		"metadata": map[string]any{"generation": int64(1)}, "status": map[string]any{"x": 1}}
	after := map[string]any{"kind": "X", "spec": map[string]any{"n": int64(2), "list": []any{"a", "c"}, "new": "x"},
		"metadata": map[string]any{"generation": int64(2)}}
	var got []string
	for _, c := range Changes(before, after) {
		got = append(got, fmt.Sprintf("%s: %v -> %v", c.Path, c.Before, c.After))
	}
	want := []string{"spec.list[1]: b -> c", "spec.n: 1 -> 2", "spec.new: <nil> -> x", "spec.old: true -> <nil>"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestEachWaitIsTold(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	old := []ObjectStatus{{Object: "ConfigMap a/b", Reason: "refused", Since: now.Add(-time.Hour), Source: "b.yaml"}}
	young := []ObjectStatus{{Object: "ConfigMap a/b", Reason: "refused", Since: now.Add(-time.Second)}}
	for name, c := range map[string]struct {
		status Status
		want   string
	}{
		"all is well":                   {Status{Standing: Current, Pass: now}, ""},
		"a fault":                       {Status{Faults: []string{"a", "b", "c", "d"}}, WaitFolder},
		"an older set":                  {Status{Standing: Older}, WaitOlder},
		"another set":                   {Status{Standing: Differs}, WaitDiffers},
		"an object fails":               {Status{Failing: old}, WaitFailing},
		"an object failed a moment ago": {Status{Failing: young}, ""},
		"an object is not ready":        {Status{NotReady: old}, WaitNotReady},
		"an object is contested":        {Status{Contested: young}, WaitContested},
		"an object was just made":       {Status{NotReady: young}, ""},
		"nobody answers": {Status{Unreachable: "refused", Pass: now.Add(-time.Minute)},
			WaitUnreachable},
		"nobody answered a moment ago": {Status{Unreachable: "refused", Pass: now.Add(-time.Second)}, ""},
		"an older set with faults says both": {Status{Standing: Older, Faults: []string{"x"}}, WaitFolder + " " +
			WaitOlder},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, w := range Waits(c.status, now) {
				got = append(got, w.Name)
				if !slices.Contains(WaitNames, w.Name) || w.Reason == "" || w.Next == "" {
					t.Errorf("%+v", w)
				}
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("%q; want %q", got, c.want)
			}
		})
	}
	if w := Waits(Status{Faults: []string{"a", "b", "c", "d"}}, now)[0]; !strings.Contains(w.Reason, "and 1 more") {
		t.Errorf("the reason is %q", w.Reason)
	}
}
