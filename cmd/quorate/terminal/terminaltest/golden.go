// Package terminaltest compares what is printed for a person with golden files. `go test -update` writes them.
package terminaltest

import (
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/quorate/quorate/cmd/quorate/terminal"
)

var update = flag.Bool("update", false, "write the golden files")

// CompareTexts compares what is printed of each JSON document in a folder with the golden file beside it.
func CompareTexts(t *testing.T, dir string, show func(w io.Writer, input []byte, now time.Time) error) {
	inputs, err := filepath.Glob(dir + "/*.json")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("no input: %v", err)
	}
	now := time.Date(2026, 11, 20, 23, 52, 10, 0, time.UTC)
	for _, input := range inputs {
		t.Run(filepath.Base(input), func(t *testing.T) {
			b, err := os.ReadFile(input)
			if err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			if err := show(&out, b, now); err != nil {
				t.Fatal(err)
			}
			compareGolden(t, strings.TrimSuffix(input, ".json")+".golden", out.String())
			for line := range strings.Lines(out.String()) {
				if utf8.RuneCountInString(line) > terminal.LineWidth+1 || strings.HasSuffix(line, " \n") {
					t.Errorf("a line that is too long, or ends with a space: %q", line)
				}
			}
		})
	}
}

func compareGolden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", file, got, want)
	}
}
