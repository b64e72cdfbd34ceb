package table

import "testing"

// Rows 40 and up are the leader's: its tests ask for their names.
func TestEachRowHasANameOfItsOwn(t *testing.T) {
	seen := map[string]Row{}
	for _, r := range rows {
		seen[r.number.Name()] = r.number
	}
	for name, r := range seen {
		if found, ok := RowOf(name); r < RowHalt && (!ok || found != r) {
			t.Errorf("row %s is called %q, by which row %s is found", r, name, found)
		}
	}
	for r := range rowNamesForPeople {
		if r < 40 && seen[r.Name()] != r {
			t.Errorf("no row has the number of %q, %s", r.Name(), r)
		}
	}
}
