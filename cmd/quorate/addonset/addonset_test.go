package addonset

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/addons"
	"github.com/quorate/quorate/addons/plan"
)

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
