package terminal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"testing"
)

// A script that keeps what a command prints must not take half of it for all: /dev/full refuses every write, as a full
// disk does.
func TestWhatCannotBePrintedIsAnError(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("this machine has no /dev/full")
	}
	defer full.Close()
	for _, output := range []string{"", "json", "yaml"} {
		err := PrintAs(full, output, map[string]int{"a": 1}, func(w io.Writer) { fmt.Fprintln(w, "a 1") })
		if !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("-o %q: %v; want that the disk is full", output, err)
		}
	}
}
