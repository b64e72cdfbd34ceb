package recordtext

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/quorate/quorate/cmd/quorate/terminal"
	"github.com/quorate/quorate/etcdmember/rebuild"
)

// ShowRebuilding says what would be created, and what else there is to know.
func ShowRebuilding(w io.Writer, where string, r rebuild.Result) {
	if len(r.Lost) == 0 {
		fmt.Fprintf(w, "%s: nothing is lost that these files know of. Nothing was changed.\n", where)
	} else {
		fmt.Fprintf(w, "%s lacks:\n", where)
	}
	for _, l := range r.Lost {
		fmt.Fprintf(w, "\n  %s\n", l.Key)
		terminal.PrintText(w, "    ", "because "+l.Why)
		text, err := json.Marshal(l.Object)
		if err == nil {
			fmt.Fprintf(w, "    %s\n", text)
		}
	}
	if len(r.Notes) > 0 {
		fmt.Fprintln(w)
	}
	for _, n := range r.Notes {
		terminal.PrintText(w, "", n)
	}
	if len(r.Lost) > 0 {
		fmt.Fprintln(w)
	}
}
