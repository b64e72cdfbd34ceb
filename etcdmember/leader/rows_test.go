package leader

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

func TestEachRowHasANameOfItsOwn(t *testing.T) {
	seen := map[table.Row]bool{}
	for _, r := range rows {
		seen[r.number] = true
		if found, ok := table.RowOf(r.number.Name()); !ok || found != r.number {
			t.Errorf("row %s is called %q, by which row %s is found", r.number, r.number.Name(), found)
		}
	}
	for r := table.Row(40); r < table.RowHalt; r++ {
		if named := r.Name() != strconv.Itoa(int(r)); named != seen[r] {
			t.Errorf("row %s has a name: %t, is a row: %t", r, named, seen[r])
		}
	}
}

func TestEveryRowThatHasSomethingToSayIsShown(t *testing.T) {
	r := threeVoters()
	quietB(time.Minute)(&r)
	ringOrder(record.Order{Kind: record.OrderLeave, Place: &pc})(&r)
	var rows []string
	for _, p := range Rows(t0, Ring{}, r) {
		rows = append(rows, p.Row.String()+" "+string(p.Act))
	}
	if got := strings.Join(rows, ", "); got != "45 wait, 42 wait" || Decide(t0, Ring{}, r).Row != 45 {
		t.Errorf("%s; the plan is row %s", got, Decide(t0, Ring{}, r).Row)
	}
}
