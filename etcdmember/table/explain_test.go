package table

import (
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/record"
)

func TestEachRowAndClassHasItsWords(t *testing.T) {
	for _, r := range rows {
		if rowsInWords[r.number] == "" {
			t.Errorf("row %s has no words", r.number)
		}
	}
	for _, r := range leaderRows {
		if rowsInWords[r.number] == "" {
			t.Errorf("row %s on the leader has no words", r.number)
		}
	}
	for _, o := range []Observation{{Local: L0}, {Local: LF}, {Local: L5}, {Local: L2}, {Local: L3}, {Local: L1}} {
		if o.diskInWords() == "" {
			t.Errorf("disk %s has no words", o.Local)
		}
	}
}

func TestEachRowHasANameOfItsOwn(t *testing.T) {
	seen := map[string]Row{}
	for _, r := range rows {
		seen[r.number.Name()] = r.number
	}
	for _, r := range leaderRows {
		seen[r.number.Name()] = r.number
	}
	for name, r := range seen {
		if found, ok := RowOf(name); r < RowHalt && (!ok || found != r) {
			t.Errorf("row %s is called %q, by which row %s is found", r, name, found)
		}
	}
	for r := range rowNamesForPeople {
		if seen[r.Name()] != r {
			t.Errorf("no row has the number of %q, %s", r.Name(), r)
		}
	}
}

func TestOnTheLeaderEveryRowThatSpeaksIsExplained(t *testing.T) {
	r := threeVoters()
	quietB(time.Minute)(&r)
	ringOrder(record.Order{Kind: record.OrderLeave, Place: &pc})(&r)
	l := Last{LeaderAt: t0, Ring: r, LeaderPlan: DecideOnLeader(t0, Ring{}, r)}.explainOnLeader()
	var rows []string
	for _, p := range l.Rows {
		rows = append(rows, p.Row.String()+" "+string(p.Act))
	}
	if got := strings.Join(rows, ", "); got != "45 wait, 42 wait" || l.Plan.Row != 45 {
		t.Errorf("%s; the plan is row %s", got, l.Plan.Row)
	}
}
