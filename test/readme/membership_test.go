package readme

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/etcdmember/table"
)

// What explain and status print has to be found in the specification: they print a row's name, which leads to its
// number.
func TestTheSpecificationHasEachRowWithItsName(t *testing.T) {
	var in []string
	for _, m := range regexp.MustCompile(`(?m)^\| (\d+)\*? ([a-z-]+) \|`).FindAllStringSubmatch(
		read(t, "docs/membership.md"), -1) {
		in = append(in, m[1]+" "+m[2])
	}
	var want []string
	for r := range table.RowHalt {
		if r.Name() != r.String() {
			want = append(want, fmt.Sprintf("%d %s", int(r), r.Name()))
		}
	}
	if len(want) < 30 || !slices.Equal(in, want) {
		t.Errorf("the rows of docs/membership.md are\n%s\nand those of the code\n%s", strings.Join(in, "\n"),
			strings.Join(want, "\n"))
	}
}

func TestTheGlossaryHasEachClass(t *testing.T) {
	page := read(t, "docs/glossary.md")
	classes := []string{string(table.L0), string(table.L1), string(table.L2), string(table.L3), string(table.L5),
		string(table.LF), string(table.RUnreadable), string(table.RLost), string(table.R0), string(table.Rs),
		string(table.Rf), string(table.Rc), string(table.Quorum), string(table.Answers), string(table.Nobody)}
	for _, c := range classes {
		if !strings.Contains(page, "\n| "+c+" | ") {
			t.Errorf("docs/glossary.md does not say what class %s is", c)
		}
	}
}

// Who reads these pages has a quarter of an hour for each. A story belongs into docs/decisions or into the test that
// keeps the hole closed.
func TestTheLongPagesStayShort(t *testing.T) {
	word := regexp.MustCompile(`\w`)
	for page, limit := range map[string]int{"docs/ARCHITECTURE.md": 3500, "docs/membership.md": 4500,
		"etcdmember/DESIGN.md": 3000} {
		words := strings.Fields(read(t, page))
		words = slices.DeleteFunc(words, func(w string) bool { return !word.MatchString(w) })
		if len(words) > limit {
			t.Errorf("%s has %d words; %d are its limit", page, len(words), limit)
		}
	}
}
