package main

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/addons"
	"github.com/quorate/quorate/addons/plan"
)

func TestTheStatusSaysHowTheAddonsStand(t *testing.T) {
	for name, c := range map[string]struct {
		status plan.Status
		want   string
	}{
		"before the first pass": {plan.Status{Folder: "/a"}, "add-ons, version - of /a: nothing is applied yet"},
		"all is in place": {plan.Status{Folder: "/a", Version: "2", Standing: plan.Current, Objects: 4, InPlace: 3,
			Ready: 2}, "add-ons, version 2 of /a: 3 of 4 objects in place, 2 ready"},
		"an older set": {plan.Status{Folder: "/a", Version: "2", Inventory: "3", Standing: plan.Older},
			"add-ons, version 2 of /a: nothing is written, version 3 is in the cluster"},
		"leftovers": {plan.Status{Folder: "/a", Version: "2", Standing: plan.Current, Kept: "2 are kept"},
			"add-ons, version 2 of /a: 0 of 0 objects in place, 0 ready; 2 are kept"},
	} {
		if got := addonsText(&c.status); got != c.want {
			t.Errorf("%s: %q; want %q", name, got, c.want)
		}
	}
}

func TestDifferencesAreShown(t *testing.T) {
	var b strings.Builder
	showDifferences(&b, addons.Differences{Folder: "/a", Version: "2", Inventory: "3", Standing: plan.Older, Same: 7,
		Kept: "the folder has faults", Faults: []string{"x.yaml: bad"}, Objects: []addons.Difference{
			{Object: "ConfigMap a/b", Action: "change", Source: "b.yaml",
				Changes: []plan.Change{{Path: "data.key", Before: "x", After: nil}}},
			{Object: "Secret a/c", Action: "refuse", Reason: "it exists"}}})
	want := `/a is version 2; the cluster has 3
FAULT: x.yaml: bad
The set is older than what was applied: the manager of this folder writes nothing.

change ConfigMap a/b (b.yaml)
  data.key: "x" -> none

refuse Secret a/c
  it exists

What former sets have made is kept: the folder has faults

to do: 2; the same: 7
`
	if b.String() != want {
		t.Errorf("got\n%s", b.String())
	}
}
