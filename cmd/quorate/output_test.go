package main

import (
	"fmt"
	"io"
	"os"
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
		err := printAs(full, output, map[string]int{"a": 1}, func(w io.Writer) { fmt.Fprintln(w, "a 1") })
		if err == nil || exitCode(err) != exitNoRoom {
			t.Errorf("-o %q: %v, exit code %d; want that the disk is full, and %d", output, err, exitCode(err),
				exitNoRoom)
		}
	}
}
