package explain

import (
	"github.com/quorate/quorate/etcdmember/table"
	"strconv"
	"testing"
)

func TestEachRowAndClassHasItsWords(t *testing.T) {
	said := 0
	for r := table.Row(0); r <= table.RowWithdrawing; r++ {
		if r.Name() == strconv.Itoa(int(r)) {
			continue // there is none of this number
		}
		said++
		if rowsInWords[r] == "" {
			t.Errorf("row %s has no words", r)
		}
	}
	if said != len(rowsInWords) || said < 45 {
		t.Errorf("%d rows, and words for %d", said, len(rowsInWords))
	}
	for _, o := range []table.Observation{{Local: table.L0}, {Local: table.LF}, {Local: table.L5}, {Local: table.L2},
		{Local: table.L3}, {Local: table.L1}} {
		if diskInWords(o) == "" {
			t.Errorf("disk %s has no words", o.Local)
		}
	}
}
