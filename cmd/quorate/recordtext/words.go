package recordtext

import (
	"fmt"
	"io"

	"github.com/quorate/quorate/cmd/quorate/terminal"
	"github.com/quorate/quorate/internal/record"
)

// InceptionLost is what a command says of a record that has all but its inception, where it would else say that no
// cluster has begun.
const InceptionLost = "the inception is lost, though the record has other objects: 'quorate record rebuild' brings " +
	"it back"

// BundleText says which generation of the bundle a record has, and what it means that it has none.
func BundleText(generation uint64, masters int) string {
	switch {
	case generation == 0 && masters > 0:
		return "no bundle: unless the first master is making it now, it is lost, and 'quorate bundle import' brings " +
			"it back from escrow"
	case generation == 0:
		return "no bundle yet: the first master makes it"
	}
	return fmt.Sprintf("bundle generation %d", generation)
}

// ShowFindings prints a finding a line, and below one that is not well why it matters and what mends it.
func ShowFindings(w io.Writer, findings []record.Finding) {
	for _, f := range findings {
		fmt.Fprintln(w, f)
		if f.Level == record.OK {
			continue
		}
		terminal.PrintText(w, "      ", f.Why)
		for _, command := range f.Mend {
			fmt.Fprintln(w, "        "+command)
		}
	}
}

// CountFailed counts what has to be mended.
func CountFailed(findings []record.Finding) (n int) {
	for _, f := range findings {
		if f.Level == record.Fail {
			n++
		}
	}
	return n
}
